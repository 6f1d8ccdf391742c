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

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

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
					cmd := exec.Command("pleach", "lock", "l", "--ttl", "1s", "--wait", "10s", "--socket", a.socket, "--", "sh", "-c",
						critical, seen)
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
	await := func(n int) (lines []string) {
		t.Helper()
		testutil.Eventually(t, fmt.Sprint(n, " lines"), func() bool {
			b, _ := os.ReadFile(seen)
			lines = strings.Split(strings.TrimSpace(string(b)), "\n")
			return len(lines) >= n
		}, func() any { return lines })
		return lines
	}
	await(10)
	holder := exec.Command("pleach", "lock", "l", "--ttl", "1s", "--socket", agents[1].socket, "--", "sh", "-c",
		`echo begin $PLEACH_LOCK_TOKEN >>"$0"; echo killed >"$0.held"; sleep 30`, seen)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "a holder", func() bool {
		_, err := os.Stat(seen + ".held")
		return err == nil
	})
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

// A command under pleach lock, and all that it has started, ends before another one begins: if
// pleach lock is killed, if it is stopped, and if its supervisor is killed (case 73).
func TestCommandsEndWithTheirLock(t *testing.T) {
	agent := startAgents(t, 2, 0)[0]
	for name, hurt := range map[string]func(lock, supervisor int){
		"pleach lock is killed":    func(lock, _ int) { _ = syscall.Kill(lock, syscall.SIGKILL) },
		"pleach lock is stopped":   func(lock, _ int) { _ = syscall.Kill(lock, syscall.SIGSTOP) },
		"Ctrl-Z":                   func(lock, _ int) { _ = syscall.Kill(lock, syscall.SIGTSTP) },
		"its supervisor is killed": func(_, supervisor int) { _ = syscall.Kill(supervisor, syscall.SIGKILL) },
	} {
		dir := t.TempDir()
		// A grandchild in a session of its own, whose parent has ended.
		script := `setsid sh -c 'echo $$ >grandchild; while true; do sleep 1; done' & echo $PPID >supervisor; sleep 1000`
		holder := exec.Command("pleach", "lock", "tree", "--ttl", "5s", "--socket", agent.socket, "--", "sh", "-c", script)
		holder.Dir = dir
		// Its parent is in another process group: the kernel discards SIGTSTP in orphaned groups.
		holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		grandchild, supervisor := awaitPID(t, filepath.Join(dir, "grandchild")), awaitPID(t, filepath.Join(dir, "supervisor"))
		hurt(holder.Process.Pid, supervisor)
		gone := fmt.Sprintf("! grep -s '^State:.[RSDTt]' /proc/%d/status", grandchild) // a zombie has ended
		next := exec.Command("pleach", "lock", "tree", "--ttl", "5s", "--wait", "1m", "--socket", agent.socket,
			"--", "sh", "-c", gone)
		if out, err := next.CombinedOutput(); err != nil {
			t.Errorf("%s: the grandchild still runs when another holds the lock: %v: %s", name, err, out)
			_ = holder.Process.Kill()
		}
		_ = syscall.Kill(holder.Process.Pid, syscall.SIGCONT)
		_ = holder.Wait()
	}
}

// A command under pleach lock has the files and the signals that it would have without, and what its
// caller has started is left alone.
func TestCommandsUnderALock(t *testing.T) {
	agent := startAgents(t, 2, 0)[0]
	dir := t.TempDir()
	lock := func(more ...string) *exec.Cmd {
		c := exec.Command("pleach", append([]string{"lock", "l", "--socket", agent.socket}, more...)...)
		c.Dir = dir
		return c
	}
	run := func(c *exec.Cmd) (code int, out string) {
		t.Helper()
		b, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(b)
	}
	path := func(name string) string { return filepath.Join(dir, name) }

	t.Run("open files", func(t *testing.T) {
		c := lock("--", "sh", "-c", "echo written >&3")
		file, err := os.Create(path("file"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c.ExtraFiles = []*os.File{file}
		code, out := run(c)
		if b, _ := os.ReadFile(path("file")); code != 0 || string(b) != "written\n" {
			t.Errorf("file 3 of the command has %q, exit code %d: %s", b, code, out)
		}
	})
	t.Run("children of the caller", func(t *testing.T) {
		c := exec.Command("sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $! >sibling; exec "$@"`, "sh")
		c.Args = append(c.Args, lock("--", "true").Args...)
		c.Dir = dir
		code, out := run(c)
		sibling := awaitPID(t, path("sibling"))
		if status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", sibling)); code != 0 ||
			!strings.Contains(string(status), "State:\tS") {
			t.Errorf("a process that the caller has started was ended, exit code %d: %s", code, out)
		}
		_ = syscall.Kill(sibling, syscall.SIGKILL)
	})
	t.Run("descendants without parents", func(t *testing.T) {
		script := `sh -c 'sleep 0.1 & echo $! >orphan'; while test -e /proc/$(cat orphan); do sleep 0.1; done`
		c := lock("--", "sh", "-c", script)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		defer late.Stop()
		if err := c.Wait(); err != nil {
			t.Errorf("a descendant that has ended stays in the process table: %v", err)
		}
	})
	t.Run("signals", func(t *testing.T) {
		for _, name := range []string{"HUP", "INT", "QUIT", "TERM", "USR1", "USR2"} {
			script := fmt.Sprintf("trap 'exit 7' %s; echo $$ >%s; while true; do sleep 0.1; done", name, name)
			c := lock("--", "sh", "-c", script)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			awaitPID(t, path(name))
			_ = c.Process.Signal(signals[name])
			if _ = c.Wait(); c.ProcessState.ExitCode() != 7 {
				t.Errorf("SIG%s: %v", name, c.ProcessState)
			}
		}
	})
	t.Run("warning of a stopped pleach lock", func(t *testing.T) {
		script := `trap 'echo warned >>warnings' USR1; echo $$ >started; until test -e over; do sleep 0.1; done`
		c := lock("--warn", "USR1", "--", "sh", "-c", script)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		awaitPID(t, path("started"))
		_ = c.Process.Signal(syscall.SIGSTOP)
		warned := func() bool {
			_, err := os.Stat(path("warnings"))
			return err == nil
		}
		if !testutil.Within(time.Minute, warned) {
			t.Error("the command gets no signal")
		}
		_ = c.Process.Signal(syscall.SIGCONT)
		if err := os.WriteFile(path("over"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		if b, _ := os.ReadFile(path("warnings")); string(b) != "warned\n" {
			t.Errorf("the command was warned with %q", b)
		}
	})
	t.Run("processes that cannot be ended", func(t *testing.T) {
		if _, err := exec.LookPath("setpriv"); err != nil || os.Geteuid() != 0 {
			t.Skip("needs root and setpriv")
		}
		c := exec.Command("setpriv", "--bounding-set=-kill", "--inh-caps=-kill")
		script := `setpriv --reuid=65534 --clear-groups setsid sleep 1000 >/dev/null 2>&1 & echo $! >other; sleep 0.5`
		c.Args = append(c.Args, lock("--", "sh", "-c", script).Args...)
		c.Dir = dir
		code, out := run(c)
		other := awaitPID(t, path("other"))
		if want := fmt.Sprintf("processes of the command cannot be ended: [%d]", other); code != 0 ||
			!strings.Contains(out, want) {
			t.Errorf("exit code %d, %q does not contain %q", code, out, want)
		}
		code, out = run(lock("--try", "--", "true"))
		if code != exitNotLocked {
			t.Errorf("another one gets the lock at once: exit code %d: %s", code, out)
		}
		_ = syscall.Kill(other, syscall.SIGKILL)
	})
}

// A stopped supervisor that reads no orders does not hold up pleach lock, which ends the command then.
func TestOrdersOfAStoppedSupervisor(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	s := &supervised{orders: write}
	_ = write.SetWriteDeadline(time.Now().Add(orderTime))
	if _, err := write.Write(make([]byte, 1<<20)); err == nil {
		t.Fatal("the pipe takes a megabyte")
	}
	s.hold(time.Now())
}

// All agents are killed and started again, so they know nothing of the lock that a command runs
// under. The next command waits until that one has ended, and says why: if the holder can reach its
// agent again, and if it cannot (case 73).
func TestLocksWaitAfterAllAgentsEnded(t *testing.T) {
	address, dir := testutil.FreeAddresses(t, 1)[0], t.TempDir()
	begin := func(socket string) *agentProcess {
		a := &agentProcess{t: t, id: "a", socket: filepath.Join(dir, socket)}
		a.cmd = exec.Command("pleach", "agent", "--id", a.id, "--listen", address, "--socket", a.socket, "--expect", "1")
		if err := a.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			a.signal(syscall.SIGKILL)
			_ = a.cmd.Wait()
		})
		a.await("a member", func(s *statusJSON) bool { return len(s.Members.Members) == 1 })
		return a
	}
	agent := begin("0")
	for i, socket := range []string{"0", "1"} {
		started := filepath.Join(dir, fmt.Sprint("started", i))
		holder := exec.Command("pleach", "lock", "l", "--ttl", "8s", "--socket", agent.socket, "--", "sh", "-c",
			`echo $$ >"$0"; exec sleep 1000`, started)
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		pid := awaitPID(t, started)
		agent.signal(syscall.SIGKILL)
		_ = agent.cmd.Wait()
		agent = begin(socket)
		gone := fmt.Sprintf("! grep -s '^State:.[RSDTt]' /proc/%d/status", pid)
		next := exec.Command("pleach", "lock", "l", "--ttl", "5s", "--wait", "1m", "--socket", agent.socket,
			"--", "sh", "-c", gone)
		out, err := next.CombinedOutput()
		if err != nil {
			t.Errorf("the command from before still runs when another holds the lock: %v: %s", err, out)
		}
		if !strings.Contains(string(out), "a holder from before may still hold") {
			t.Errorf("does not say why it waits: %s", out)
		}
		if _ = holder.Wait(); holder.ProcessState.ExitCode() != exitLost {
			t.Errorf("the holder from before ends with %v", holder.ProcessState)
		}
	}
}

// awaitPID reads the number of a process from a file that appears.
func awaitPID(t *testing.T, path string) (pid int) {
	t.Helper()
	testutil.Eventually(t, "a number in "+path, func() bool {
		b, _ := os.ReadFile(path)
		_, err := fmt.Sscan(string(b), &pid)
		return err == nil
	})
	return pid
}
