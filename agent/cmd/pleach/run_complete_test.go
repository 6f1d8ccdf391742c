//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Case 88: a process that hangs and was removed from the job is killed with all that it has started, and
// a job that the others have completed succeeds. A failure that nobody has made up for does not.
func TestRunEndsWithTheJob(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ssh, remote := filepath.Join(folder, "ssh"), filepath.Join(folder, "pleach")
	if err := os.WriteFile(ssh, []byte("#!/bin/sh\nshift\nexec sh -c \"$*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, remote); err != nil { // the name is what it runs as: see TestMain
		t.Fatal(err)
	}
	const success = "pleach: success: 3 survivors completed the job without rank 1\n"
	for name, c := range map[string]struct {
		flags  []string
		err    string // "": success
		stderr []string
	}{
		"spin":        {nil, "", []string{"killing it", "removed from the job in view 2 after ", success}},
		"suspend":     {nil, "", []string{"killing it", "removed from the job in view 2 after ", success}},
		"exit":        {nil, "", []string{"exit code 3, removed from the job in view 2: rank 1", success}},
		"kill":        {nil, "", []string{"crashed (killed), removed from the job in view 2: rank 1", success}},
		"close":       {nil, "", []string{"pleach: 1 of 4 processes did not exit with 0\n", success}},
		"exit at end": {nil, "exit code 3", nil},
		"no world":    {nil, "exit code 3", nil},
		"strict":      {[]string{"--strict-exit"}, "exit code 3", nil},
		"hosts": {
			[]string{"--hosts", "127.0.0.1:4", "--ssh", ssh, "--remote-pleach", remote},
			"",
			[]string{"killing it", success},
		},
		"on purpose": {[]string{"--kill", "1@/step 2/"}, "", []string{
			"killing rank 1 after ", "killed on purpose: rank 1",
			success,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			root := newRoot()
			args := append([]string{
				"run", "-n", "4", "--progress-timeout", "1s", "--env", "FAILS=" + name,
				"--env", "GORACE=atexit_sleep_ms=0",
			}, c.flags...)
			root.SetArgs(append(args, self, "-test.run", "^TestRunChildJob$", "-test.v"))
			root.SetOut(&stdout)
			root.SetErr(&stderr)
			err := root.ExecuteContext(t.Context())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q\n%s%s", err, c.err, &stdout, &stderr)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("no %q in\n%s", want, &stderr)
				}
			}
			if _, pid, ok := strings.Cut(stdout.String(), "sleeper "); ok {
				number := 0
				if _, err := fmt.Sscan(pid, &number); err != nil {
					t.Fatal(err)
				}
				awaitGone(t, number)
			}
		})
	}
}

// awaitGone waits until a process has ended: the kernel kills a group member after member.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("the end of process %d, which the removed one has started", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || err == nil && bytes.Contains(stat, []byte(") Z "))
	})
}

// TestRunChildJob is what TestRunEndsWithTheJob starts: rank 1 fails in the third of six steps.
func TestRunChildJob(t *testing.T) {
	fails := os.Getenv("FAILS")
	if fails == "" || os.Getenv("PLEACH_LISTEN_FD") == "" {
		t.Skip("started by another test")
	}
	if fails == "no world" {
		if os.Getenv("PLEACH_RANK") == "1" {
			os.Exit(3)
		}
		return
	}
	ctx := t.Context()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 6 {
		fmt.Println("step", step)
		if w.Rank() == 1 && step == 2 {
			failAs(t, w, fails)
		}
		sum, err := collective.Allreduce(ctx, w, []int{w.Rank()}, collective.Sum[int](),
			collective.Restore(func(_ context.Context, task int) ([]int, error) { return []int{task}, nil }))
		if err != nil || sum[0] != 6 {
			t.Fatal(sum, err)
		}
	}
	if err := w.Finalize(ctx); err != nil {
		t.Fatal(err)
	}
	if fails == "exit at end" && w.Rank() == 1 {
		os.Exit(3)
	}
}

func failAs(t *testing.T, w *pleach.World, fails string) {
	switch fails {
	case "spin", "hosts":
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("sleeper", child.Process.Pid)
		for spins := 0; ; spins++ { // that is the failure
			if spins < 0 {
				return
			}
		}
	case "suspend":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "exit", "strict":
		os.Exit(3)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "close":
		w.Close()
		os.Exit(3)
	case "on purpose":
		select {}
	}
}
