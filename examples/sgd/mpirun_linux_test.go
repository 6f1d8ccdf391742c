package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/ps"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Two jobs of mpirun run on one host side by side, and both are found there.
func TestTwoJobsOfMpirunOnOneHost(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("its processes are slow to start with the race detector: .ci/run big runs it")
	}
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip(err)
	}
	var outputs [2]bytes.Buffer
	var jobs [2]*exec.Cmd
	for i := range jobs {
		jobs[i] = exec.Command(mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", os.Args[0])
		jobs[i].Stdout, jobs[i].Stderr = &outputs[i], &outputs[i]
		if err := jobs[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	testutil.Within(20*time.Second, func() bool {
		found = 0
		for _, j := range ps.FindJobs("/proc", "") {
			if strings.HasPrefix(j.Group, "ompi-") && len(j.PIDs) == 2 {
				found++
			}
		}
		return found >= 2
	})
	if found < 2 {
		t.Errorf("%d of 2 jobs were found", found)
	}
	for i, job := range jobs {
		if err := job.Wait(); err != nil || !strings.Contains(outputs[i].String(), "after 600 steps") {
			t.Errorf("%v: %s", err, outputs[i].String())
		}
	}
}
