package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A job of which all processes were killed resumes from its checkpoint, and the model is the
// same.
func TestModelIsTheSameAfterAllProcessesWereKilled(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("its processes are slow to start with the race detector: .ci/run big runs it")
	}
	name := filepath.Join(t.TempDir(), "checkpoint")
	run := func(when map[string]func()) string {
		out := &watched{when: when}
		var complaint bytes.Buffer
		if _, err := launch.Run(launch.Job{
			Size: 3, Program: os.Args[0], Args: []string{os.Args[0]}, Env: []string{"SGD_CHECKPOINT=" + name},
			Grace:  time.Second,
			Output: &launch.Output{Stdout: launch.Stream{Writer: out}, Stderr: launch.Stream{Writer: &complaint}},
		}); err != nil {
			t.Fatalf("%v: %s", err, complaint.String())
		}
		return out.String()
	}
	first := run(map[string]func(){"step 300:": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }}) // to all
	second := run(nil)
	if strings.Contains(first, "step 600:") || strings.Contains(second, "step 100:") {
		t.Errorf("the job was not resumed: %s%s", first, second)
	}
	model := regexp.MustCompile(`model [0-9a-f]{16} after 600 steps`)
	if want, got := model.FindString(train(t, 3)), model.FindString(second); want == "" || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
