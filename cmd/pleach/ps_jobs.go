package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/bootstrap"
)

// runningJob is a job with processes on this host.
type runningJob struct {
	group     string
	addresses []string
	pids      []int
}

// findJobs looks at the environments of processes, which say what job they belong
// to, by the words of package bootstrap. Only those of the same user can be read,
// and what cannot be read is not meant. Only Linux has the directory.
func findJobs(proc, group string) (jobs []*runningJob) {
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
		if err != nil || !bytes.Contains(environment, []byte("PLEACH_")) {
			continue
		}
		place, err := bootstrap.Detect(variables(environment))
		if err != nil || len(place.Addresses) == 0 || group != "" && place.Group != group {
			continue
		}
		i := slices.IndexFunc(jobs, func(j *runningJob) bool {
			return j.group == place.Group && slices.Equal(j.addresses, place.Addresses)
		})
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, &runningJob{group: place.Group, addresses: place.Addresses})
		}
		jobs[i].pids = append(jobs[i].pids, pid)
	}
	return jobs
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

// onlyJob returns the one that there is, or says how to choose.
func onlyJob(jobs []*runningJob) (*runningJob, error) {
	switch len(jobs) {
	case 0:
		return nil, errors.New("no job of yours runs on this host, as far as can be seen: write the address of one of its processes, as in pleach ps 127.0.0.1:7000 --group NAME")
	case 1:
		return jobs[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs of yours run on this host: choose one by --group", len(jobs))
	for _, j := range jobs {
		fmt.Fprintf(&b, "\n  --group %s  (%s, one with pid %d)", printable(j.group), count(len(j.addresses), "rank"), j.pids[0])
	}
	return nil, errors.New(b.String())
}
