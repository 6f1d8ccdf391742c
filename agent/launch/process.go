package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// Process is a process that was started. It leads a process group of its own:
// what it starts is signaled and ended with it, and Ctrl-C does not reach it.
type Process struct {
	cmd   *exec.Cmd
	input *os.File // or nil
	ended chan struct{}
	at    time.Time // of the end

	outputs sync.WaitGroup
	pipes   []*os.File // read from, until the end of the process
	// theirs is what only the process may hold once it runs, so that readers see
	// its end.
	theirs []*os.File
}

// start starts a process that inherits files as descriptors 3, 4 and so on.
func start(c Command, env []string, files []*os.File) (_ *Process, err error) {
	p := &Process{ended: make(chan struct{})}
	defer func() {
		closeAll(p.theirs)
		p.theirs = nil
		if err != nil {
			closeAll(p.pipes)
			p.CloseInput()
		}
	}()
	if c.Program == "" {
		c.Program, err = os.Executable()
		if err != nil {
			return nil, err
		}
	}
	p.cmd = &exec.Cmd{
		Path: c.Program, Args: c.Args, Env: append(env, c.Env...),
		ExtraFiles:  files,
		SysProcAttr: attributes(c.DieWithParent),
	}
	if err := p.connect(c); err != nil {
		return nil, err
	}
	if c.Reports != nil {
		reports, err := p.pipeTo(c.Reports)
		if err != nil {
			return nil, err
		}
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("%s=%d", reportVariable, 3+len(files)))
		p.cmd.ExtraFiles = append(slices.Clone(files), reports)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.reap()
	return p, nil
}

// connect makes the pipes of the standard streams.
func (p *Process) connect(c Command) (err error) {
	for _, s := range []struct {
		stream *io.Writer
		to     io.Writer
	}{{&p.cmd.Stdout, c.Stdout}, {&p.cmd.Stderr, c.Stderr}} {
		switch to := s.to.(type) {
		case nil:
		case *os.File:
			*s.stream = to
		default:
			*s.stream, err = p.pipeTo(to)
			if err != nil {
				return err
			}
		}
	}
	if !c.Input {
		return nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	p.theirs = append(p.theirs, read)
	p.cmd.Stdin, p.input = read, write
	return nil
}

// pipeTo returns the end of a pipe to write to, and copies what comes to w.
func (p *Process) pipeTo(w io.Writer) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs = append(p.theirs, write)
	p.pipes = append(p.pipes, read)
	p.outputs.Go(func() { (&drain{file: read}).copyTo(w) })
	return write, nil
}

// reap waits for the end of the process, kills what it left behind and reads
// what it has printed.
func (p *Process) reap() {
	_ = p.cmd.Wait() // its state tells
	p.at = time.Now()
	// The group's number is not in use again yet: systems count through all
	// numbers before they reuse one.
	p.Kill()
	for _, f := range p.pipes {
		_ = f.SetReadDeadline(time.Now())
	}
	p.outputs.Wait()
	closeAll(p.pipes)
	close(p.ended)
}

// Ended is closed when the process has been reaped and its output is written.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State returns how the process ended. It may be called after [Process.Ended].
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Wait returns when the process has been reaped. If ctx ends first, Wait kills
// the process. Unless the process exited with 0, it returns an
// [*exec.ExitError].
func (p *Process) Wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.Kill)()
	<-p.ended
	if !p.State().Success() {
		return &exec.ExitError{ProcessState: p.State()}
	}
	return nil
}

// exit says how the process ended, for the report of a job.
func (p *Process) exit() exit {
	return exit{at: p.at, code: p.State().ExitCode(), signal: p.endedBy()}
}

// feed writes to the standard input all that is read. It ends with that or the process.
func (p *Process) feed(r io.Reader) {
	_, _ = io.Copy(p.Input(), r)
	p.CloseInput()
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Input is the pipe to the standard input, or nil.
func (p *Process) Input() *os.File { return p.input }

// CloseInput ends the standard input.
func (p *Process) CloseInput() {
	if p.input != nil {
		_ = p.input.Close()
	}
}
