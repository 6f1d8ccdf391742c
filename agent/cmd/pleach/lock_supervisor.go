//go:build unix

package main

// The command of pleach lock runs under a supervisor, a process of its own, so that the command ends
// in time even if pleach lock itself is killed or stopped. The supervisor gets the time until which
// the lock is held through a pipe. It kills the command and all its descendants when that time is
// over, or when pleach lock is gone. On Linux, both are subreapers: descendants that leave the
// process group or the session, or whose parents end, stay below them. If the supervisor is killed
// or stopped, pleach lock kills the descendants.

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
)

// supervisorCommand is the hidden command that is the supervisor.
const supervisorCommand = "lock-supervisor"

func newLockSupervisor() *cobra.Command {
	return &cobra.Command{
		Use: supervisorCommand, Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			orders, _ := strconv.Atoi(args[0])
			warning, _ := strconv.Atoi(args[1])
			code, err := runSupervisor(readOrders(orders), syscall.Signal(warning), args[2], args[3:])
			if err != nil || code != 0 {
				return cli.Exit(code, err)
			}
			return nil
		},
	}
}

// order is what pleach lock tells the supervisor: until when the lock is held, by the boot clock, or
// a signal for the command.
type order struct {
	until  time.Duration
	signal syscall.Signal
}

// readOrders reads the orders of pleach lock from a descriptor until it is gone.
func readOrders(descriptor int) <-chan order {
	syscall.CloseOnExec(descriptor)
	orders := make(chan order)
	go func() {
		defer close(orders)
		lines := bufio.NewScanner(os.NewFile(uintptr(descriptor), "orders"))
		for lines.Scan() {
			var o order
			if _, err := fmt.Sscan(lines.Text(), (*int64)(&o.until), (*int)(&o.signal)); err != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// runSupervisor runs a command as long as the lock is held, and returns its exit code. With a
// warning, the command gets that signal when the lock ends, and continues.
func runSupervisor(orders <-chan order, warning syscall.Signal, program string, args []string) (code int, err error) {
	becomeSubreaper()
	// pleach lock passes its own on
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	first, ok := <-orders
	if !ok {
		return exitLost, nil
	}
	c := exec.Command(program, args[1:]...)
	c.Args[0] = args[0]
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	group, err := startGroup(c)
	if err != nil {
		return commandCode(err), err
	}
	defer group.killTree()
	for until := first.until; ; {
		left := until - bootClock()
		if left <= 0 {
			if warning == 0 {
				return exitLost, nil
			}
			group.signal(warning)
			until, left = forever, forever
		}
		select {
		case <-group.ended:
			return group.code(), nil
		case <-time.After(min(left, time.Second)): // the boot clock may run on while timers stand still
		case o, ok := <-orders:
			if !ok {
				return exitLost, nil
			}
			until = max(until, o.until)
			if o.signal != 0 {
				group.signal(o.signal)
			}
		}
	}
}

// startGroup starts a command in a process group of its own. On Linux, the command is killed when
// this process is: the kernel does so when the thread ends that has started it.
func startGroup(c *exec.Cmd) (*processGroup, error) {
	g, started := &processGroup{cmd: c, ended: make(chan struct{})}, make(chan error)
	c.SysProcAttr = groupAttributes()
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			g.wait()
		}
	}()
	return g, <-started
}

// processGroup is a command and its children.
type processGroup struct {
	cmd    *exec.Cmd
	ended  chan struct{}      // closed when the command has ended
	status syscall.WaitStatus // of the command, when it has ended
}

// wait waits for the command, and for descendants whose parents have ended, until there are none.
// Otherwise a command that runs for long could fill the process table with them.
func (g *processGroup) wait() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no children are left
			return
		case pid == g.cmd.Process.Pid:
			g.status = status
			close(g.ended)
		}
	}
}

func (g *processGroup) signal(s syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, s) }

// killTime bounds how long killed processes are waited for. One that waits for a disk ends only when
// it has it, and one of another user does not get the signal.
const killTime = 2 * time.Second

// killTree kills the command and all its descendants, and waits until they have ended, or cannot be
// ended.
func (g *processGroup) killTree() {
	g.signal(syscall.SIGKILL)
	killDescendants(nil)
	select {
	case <-g.ended:
	case <-time.After(killTime):
	}
}

// code is the exit code of the command, as shells have it.
func (g *processGroup) code() int { return exitCode(g.status) }

// supervised is a command that runs under a supervisor, as pleach lock sees it.
type supervised struct {
	cmd    *exec.Cmd // the supervisor
	orders *os.File
	spared []int // children that this process had before, as after the exec of a shell
	ended  chan struct{}
	left   []int // processes of the command that could not be ended, when ended is closed
}

// startSupervised starts a command under a supervisor, which ends it at until. With a warning, the
// command gets that signal instead.
func startSupervised(c *exec.Cmd, until time.Time, warning os.Signal) (*supervised, error) {
	becomeSubreaper()
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	// The supervisor gets the pipe at its number here: the command may expect files at numbers from 3 on.
	descriptor, err := syscall.Dup(int(read.Fd()))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	defer syscall.Close(descriptor)
	number, _ := warning.(syscall.Signal)
	args := append([]string{supervisorCommand, strconv.Itoa(descriptor), strconv.Itoa(int(number)), c.Path}, c.Args...)
	s := &supervised{
		cmd: exec.Command(self, args...), orders: write, spared: descendants(os.Getpid(), nil),
		ended: make(chan struct{}),
	}
	s.cmd.Args[0] = os.Args[0]
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = c.Stdin, c.Stdout, c.Stderr, c.Env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	s.hold(until)
	go func() {
		_ = s.cmd.Wait() // code tells
		s.left = killDescendants(s.spared)
		close(s.ended)
	}()
	return s, nil
}

// hold tells the supervisor until when the lock is held.
func (s *supervised) hold(until time.Time) { s.order(bootClock()+time.Until(until), 0) }

func (s *supervised) terminate() { s.signal(syscall.SIGTERM) }

func (s *supervised) signal(sig os.Signal) { s.order(0, sig.(syscall.Signal)) }

// orderTime bounds how long an order waits for a supervisor that reads none, because it is stopped.
const orderTime = 100 * time.Millisecond

func (s *supervised) order(until time.Duration, sig syscall.Signal) {
	_ = s.orders.SetWriteDeadline(time.Now().Add(orderTime))
	_, _ = fmt.Fprintln(s.orders, int64(until), int(sig)) // a supervisor that has ended needs none
}

// kill kills the command without its supervisor, which may be stopped.
func (s *supervised) kill() { killDescendants(s.spared) }

func (s *supervised) code() int { return exitCode(s.cmd.ProcessState.Sys().(syscall.WaitStatus)) }

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
