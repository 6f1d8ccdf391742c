//go:build unix

package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// TestMain runs the example in processes that the test starts.
func TestMain(m *testing.M) {
	if os.Getenv("PLEACH_LISTEN_FD") != "" || os.Getenv("OMPI_COMM_WORLD_RANK") != "" ||
		os.Getenv("PLEACH_RENDEZVOUS") != "" {
		main()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "host" { // by ssh
		_ = launch.Serve(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// train runs the example, and returns what it prints.
func train(t *testing.T, size int, kill ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	faults, err := launch.Schedule(size, kill, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	report, err := launch.Run(launch.Job{
		Size: size, Program: self, Args: []string{"sgd"}, Faults: faults, Respawn: true, Grace: time.Second,
		Output: &launch.Output{Stdout: launch.Stream{Writer: &out}, Stderr: launch.Stream{Writer: &complaint}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if o, failed := report.FirstFailure(); failed || len(report.Missed)+len(report.Unmatched) > 0 {
		t.Errorf("%v: %+v, missed %v and %v: %s%s", kill, o, report.Missed, report.Unmatched, out.String(),
			complaint.String())
	}
	return out.String()
}

// Processes that are killed come back, with their tasks, and the model is that of a run in
// which none was.
func TestModelIsTheSameAlthoughProcessesAreReplaced(t *testing.T) {
	model := regexp.MustCompile(`model [0-9a-f]{16} after 600 steps`)
	want := model.FindString(train(t, 3))
	out := train(t, 3, "0@/^step 200/", "0@/is back/")
	if got := model.FindString(out); want == "" || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, line := range []string{
		`rank 0 is back at step .*, with tasks \[0\]`,
		`step 600: .* tasks that have moved: \[\]`,
	} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("no %q in %s", line, out)
		}
	}
}
