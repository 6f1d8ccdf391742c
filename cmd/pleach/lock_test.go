//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/cli"
	"github.com/pleach-go/pleach/internal/testutil"
)

// The commands of the guide work on one host.
func TestGuideToLocks(t *testing.T) {
	host := newMachines(t, 1, "bash", "mount", "cp")[0]
	for _, c := range testutil.CodeBlocks(t, "../../docs/guide/locks.md", "The first lock")[0].Commands() {
		if line, background := strings.CutSuffix(c.Line, " &"); background {
			host.start(line).await(contains("msg=member "), nil)
		} else if got := host.run(c.Line); !c.Says(got) {
			t.Errorf("%s prints %q, want %q", c.Line, got, c.Output)
		}
	}
}

// critical is what runs under the lock: it tells an observer when it begins and ends.
const critical = `echo begin $PLEACH_LOCK_TOKEN >>"$0"; sleep 0.05; echo end $PLEACH_LOCK_TOKEN >>"$0"`

// Commands on three agents take one lock in turn. A holder is killed, and the agent that leads is.
// An observer sees that tokens rise, and that no command is still running, or writes, when another
// one has begun.
func TestLocksAlthoughHoldersAndLeadersDie(t *testing.T) {
	agents := startAgents(t, 3, 0)
	seen := filepath.Join(t.TempDir(), "seen")
	var running sync.WaitGroup
	var over atomic.Bool
	defer running.Wait()
	defer over.Store(true)
	for _, a := range agents {
		for range 2 {
			running.Go(func() {
				for !over.Load() {
					cmd := exec.Command("pleach", "lock", "l", "--ttl", "1s", "--wait", "10s", "--socket", a.socket, "--", "sh", "-c", critical, seen)
					out, err := cmd.CombinedOutput()
					if err != nil && cmd.ProcessState.ExitCode() == cli.ExitFailure {
						return // its agent is dead
					}
					if code := cmd.ProcessState.ExitCode(); err != nil && code != exitLost && code != exitNotLocked {
						t.Errorf("%v: %s", err, out)
					}
				}
			})
		}
	}
	await := func(n int) []string {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			b, _ := os.ReadFile(seen)
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			if len(lines) >= n {
				return lines
			}
			if time.Now().After(deadline) {
				t.Fatalf("only %q after a minute", lines)
			}
		}
	}
	await(10)
	holder := exec.Command("pleach", "lock", "l", "--ttl", "1s", "--socket", agents[1].socket, "--", "sh", "-c", `echo begin $PLEACH_LOCK_TOKEN >>"$0"; echo killed >"$0.held"; sleep 30`, seen)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(seen + ".held"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no holder")
		}
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	n := len(await(1))
	n = len(await(n + 8))
	agents[0].signal(syscall.SIGKILL) // it leads
	n = len(await(n + 12))
	over.Store(true)
	running.Wait()
	if bad := overlap(await(n)); bad != "" {
		t.Error(bad)
	}
}

// overlap says what an observer has seen that must not be: a token that is not above the one before,
// or an end after another one has begun.
func overlap(lines []string) string {
	var last uint64
	for i, line := range lines {
		var what string
		var token uint64
		if _, err := fmt.Sscan(line, &what, &token); err != nil {
			return fmt.Sprintf("line %d: %q", i, line)
		}
		switch {
		case what == "begin" && token <= last:
			return fmt.Sprintf("token %d after %d", token, last)
		case what == "end" && token != last:
			return fmt.Sprintf("token %d has ended while %d was held", token, last)
		}
		last = max(last, token)
	}
	return ""
}

// The observer finds what it looks for.
func TestOverlapIsFound(t *testing.T) {
	good := []string{"begin 1", "end 1", "begin 2", "begin 5", "end 5"}
	if got := overlap(good); got != "" {
		t.Error(got)
	}
	for _, bad := range [][]string{{"begin 2", "end 2", "begin 2"}, {"begin 1", "begin 2", "end 1"}, {"end"}} {
		if overlap(slices.Concat(good[:2], bad)) == "" {
			t.Errorf("%q passes", bad)
		}
	}
}
