//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// signals are those that --warn knows.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func signalNamed(name string) (os.Signal, error) {
	s, ok := signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	if !ok {
		return nil, fmt.Errorf("--warn is %q: write HUP, INT, QUIT, TERM, USR1 or USR2", name)
	}
	return s, nil
}

// forwarded returns the signals of this process that its command gets, too, until stop is called.
func forwarded() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// processGroup is a command and its children.
type processGroup struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// startGroup starts a command in a process group of its own. On Linux, the command is killed when
// this process is: the kernel does so when the thread ends that has started it.
func startGroup(c *exec.Cmd) (*processGroup, error) {
	g, started := &processGroup{c, make(chan struct{})}, make(chan error)
	c.SysProcAttr = groupAttributes()
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait() // code tells
			close(g.ended)
		}
	}()
	return g, <-started
}

func (g *processGroup) signal(s os.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, s.(syscall.Signal)) }
func (g *processGroup) kill()              { g.signal(syscall.SIGKILL) }

// code is the exit code of the command, as shells have it.
func (g *processGroup) code() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// commandCode is the exit code for a command that cannot be run, as shells have it.
func commandCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return 127
	}
	return 126
}
