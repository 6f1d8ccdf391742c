package faults

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Case 18: Open MPI's launcher ends a job at the first death, unless it is told to go on.
// Then the survivors finish.
func TestCase18Mpirun(t *testing.T) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip(err)
	}
	version, err := exec.Command(mpirun, "--version").Output()
	if err != nil || !strings.Contains(string(version), "Open MPI") {
		t.Skipf("%s is not Open MPI's: %s, %v", mpirun, version, err)
	}
	name, _, _ := strings.Cut(string(version), "\n")
	for _, test := range []struct {
		flags    []string
		finishes bool
	}{{[]string{"--enable-recovery"}, true}, {nil, false}} {
		args := append([]string{"--allow-run-as-root", "--oversubscribe", "-n", "4"}, test.flags...)
		c := exec.Command(mpirun, append(args, os.Args[0], "-test.run=^TestJobProgram$")...)
		c.Env = append(os.Environ(), programVariable+"=rounds", "PLEACH_FAULTS_VICTIM=2",
			"PLEACH_FAULTS_ROUNDS=300", "PLEACH_FAULTS_PAUSE=10ms")
		out, err := c.CombinedOutput()
		written := strings.Count(string(out), "wrote ")
		figures(t, map[string]any{"case": 18, "launcher": name, "flags": test.flags, "tasks_written": written})
		if finished := err == nil && written == 4; finished != test.finishes {
			t.Errorf("mpirun %v: %v\n%s", test.flags, err, out)
		}
	}
}
