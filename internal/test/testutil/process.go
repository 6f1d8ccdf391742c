//go:build unix

package testutil

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a child process that a test can stop and kill: the test binary
// itself, in the role that an environment variable names. The test's TestMain
// reads the variable and plays the role.
type Process struct {
	Lines // What the process has printed.
	t     *testing.T
	cmd   *exec.Cmd
	in    *json.Encoder
	ended chan struct{} // closed when the process has ended
}

// StartProcess starts the test binary with variable=role. The process is killed
// when the test ends.
func StartProcess(t *testing.T, variable, role string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(os.Args[0]), variable, role)
}

// StartCommand starts a command that runs the test binary elsewhere, as StartProcess does on this host.
func StartCommand(t *testing.T, cmd *exec.Cmd, variable, role string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variable+"="+role)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in = json.NewEncoder(in)
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.Add(lines.Text())
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.Kill()
		_ = in.Close()
	})
	return p
}

// StartRole starts the test binary in a role that [PlayRole] plays, with its config.
func StartRole(t *testing.T, variable string, config any) *Process {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return StartProcess(t, variable, string(text))
}

// PlayRole plays a role and ends the process, if the variable is set: it has the role's
// config. An init function calls it.
func PlayRole[C any](variable string, play func(C)) {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var c C
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	play(c)
	os.Exit(0)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Terminate asks the process to end, and waits until it has.
func (p *Process) Terminate() {
	p.Signal(syscall.SIGTERM)
	<-p.ended
}

// Kill kills the process and waits until it has ended, so that its port is free.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Write sends a value to the standard input of the process, as JSON.
func (p *Process) Write(v any) {
	p.t.Helper()
	if err := p.in.Encode(v); err != nil {
		p.t.Fatal(err)
	}
}

// Lines collects lines of text from several goroutines, with the time of each.
type Lines struct {
	mu    sync.Mutex
	lines []string
	at    []time.Time
}

// Add adds a line.
func (l *Lines) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.at = append(l.lines, line), append(l.at, time.Now())
}

// All returns the lines so far.
func (l *Lines) All() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Wait waits for a line with a prefix. It returns the rest of the line and the time at which it was
// added.
func (l *Lines) Wait(t *testing.T, prefix string) (rest string, at time.Time) {
	t.Helper()
	Eventually(t, fmt.Sprintf("a line that begins with %q", prefix), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
		if i >= 0 {
			rest, at = strings.TrimSpace(l.lines[i][len(prefix):]), l.at[i]
		}
		return i >= 0
	}, func() any { return l.All() })
	return rest, at
}
