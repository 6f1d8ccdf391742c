package ps

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
)

// Job is a job with processes on this host.
type Job struct {
	Group     string
	Secret    []byte   // nil: there is none
	Addresses []string // by rank
	PIDs      []int    // of its processes on this host
}

// FindJobs looks for jobs in the environments of the processes below a directory,
// which is /proc: package bootstrap reads the job of a process from its variables.
// Only processes of the same user can be read; others are passed over. With a
// group, only its jobs are returned. Only Linux has the directory.
func FindJobs(proc, group string) (jobs []*Job) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join(proc, entry.Name(), "environ"))
		if err != nil {
			continue
		}
		place, err := bootstrap.Detect(variables(environment))
		if err != nil || len(place.Addresses) == 0 || group != "" && place.Group != group {
			continue
		}
		if !bytes.Contains(environment, []byte("PLEACH_")) && !listens(place.Addresses[place.Rank]) {
			continue // another program of mpirun, torchrun or srun
		}
		i := slices.IndexFunc(jobs, func(j *Job) bool {
			return j.Group == place.Group && slices.Equal(j.Addresses, place.Addresses)
		})
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, &Job{Group: place.Group, Secret: place.Secret, Addresses: place.Addresses})
		}
		jobs[i].PIDs = append(jobs[i].PIDs, pid)
	}
	return jobs
}

// listens reports whether a process of this host listens at an address.
func listens(address string) bool {
	c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// variables reads an environment as the kernel shows it.
func variables(environment []byte) func(string) string {
	return func(name string) string {
		for v := range bytes.SplitSeq(environment, []byte{0}) {
			if value, ok := strings.CutPrefix(string(v), name+"="); ok {
				return value
			}
		}
		return ""
	}
}
