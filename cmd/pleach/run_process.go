//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is one rank. It leads a process group of its own, so that what it
// starts can be ended with it.
type process struct {
	rank    int
	cmd     *exec.Cmd
	outputs sync.WaitGroup
	pipes   []*os.File // read from, until its end
	// theirs is what only the process may hold once it runs: when it is dead,
	// readers shall see the end and peers shall be refused.
	theirs []*os.File

	// Written before the job is told of the end.
	after time.Duration // from the start to the end

	// The job's.
	ended   bool
	killed  bool // by --kill
	stopped bool // by --stop, for good
	told    bool // to end, with all others
}

func startProcess(c *jobConfig, rank int, s *sockets) (*process, error) {
	p := &process{rank: rank, theirs: []*os.File{s.files[rank]}}
	p.cmd = &exec.Cmd{
		Path: c.program, Args: c.args,
		Env:         append(s.environment(rank), c.env...),
		ExtraFiles:  []*os.File{s.files[rank]}, // number 3 in the process
		SysProcAttr: groupOfItsOwn(),
	}
	var err error
	p.cmd.Stdout, err = p.pipeTo(c.output, c.output.stdout)
	if err == nil {
		p.cmd.Stderr, err = p.pipeTo(c.output, c.output.stderr)
	}
	if err == nil && rank == 0 && c.stdin != nil {
		p.cmd.Stdin, err = p.pipeFrom(c.stdin)
	}
	if err == nil {
		err = p.cmd.Start()
	}
	closeAll(p.theirs)
	p.theirs = nil
	if err != nil {
		closeAll(p.pipes)
		return nil, err
	}
	return p, nil
}

// pipeTo returns where the process writes to, and copies it to w.
func (p *process) pipeTo(o *output, w io.Writer) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs = append(p.theirs, write)
	p.pipes = append(p.pipes, read)
	p.outputs.Go(func() { o.copyLines(w, p.rank, &lastWords{file: read}) })
	return write, nil
}

// pipeFrom returns where the process reads from what comes from r. It does not
// get a terminal itself: a group in the background may not read it.
func (p *process) pipeFrom(r io.Reader) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs = append(p.theirs, read)
	go func() {
		_, _ = io.Copy(write, r) // ends with the input or the process
		write.Close()
	}()
	return read, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// wait waits for the end of the process and of what it prints, ends what it
// left behind, and tells.
func (p *process) wait(o *output, ended chan<- *process) {
	_ = p.cmd.Wait() // outcome looks at the state
	p.after = time.Since(o.start).Round(time.Millisecond)
	// The group's number cannot be somebody else's yet: systems count through
	// all numbers before they use one again.
	p.signal(syscall.SIGKILL)
	for _, f := range p.pipes {
		_ = f.SetReadDeadline(time.Now())
	}
	p.outputs.Wait()
	closeAll(p.pipes)
	ended <- p
}

// signal sends to the process and all it has started. If nobody is left, that
// is as well.
func (p *process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s)
}

// outcome is how a process has ended.
type outcome struct {
	kind outcomeKind
	text string
}

type outcomeKind int

const (
	well outcomeKind = iota
	struck
	failed
)

func (p *process) outcome() outcome {
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	bySIGKILL := status.Signaled() && status.Signal() == syscall.SIGKILL
	switch {
	case status.Exited() && status.ExitStatus() == 0:
		return outcome{well, "exit code 0"}
	case bySIGKILL && p.killed:
		return outcome{struck, "killed on purpose"}
	case bySIGKILL && p.stopped:
		return outcome{struck, "stopped on purpose, ended with the others"}
	case p.told && (bySIGKILL || status.Signaled() && status.Signal() == syscall.SIGTERM):
		return outcome{struck, "told to end"}
	case status.Exited():
		return outcome{failed, fmt.Sprintf("exit code %d", status.ExitStatus())}
	default:
		return outcome{failed, fmt.Sprintf("crashed (%v)", status.Signal())}
	}
}
