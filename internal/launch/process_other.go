//go:build !unix

package launch

import (
	"context"
	"os"
	"time"
)

// Process is a process that was started: here there is none.
type Process struct{ at time.Time }

func start(Command, []string, []*os.File) (*Process, error) { return nil, ErrUnsupported }

// Ended is closed when the process has been reaped and its output is written.
func (*Process) Ended() <-chan struct{} { return nil }

// State returns how the process ended.
func (*Process) State() *os.ProcessState { return nil }

// Wait returns when the process has been reaped.
func (*Process) Wait(context.Context) error { return ErrUnsupported }

// PID returns the process's number.
func (*Process) PID() int { return 0 }

// Input is the pipe to the standard input, or nil.
func (*Process) Input() *os.File { return nil }

// CloseInput ends the standard input.
func (*Process) CloseInput() {}

// Kill ends the process and all it has started.
func (*Process) Kill() {}

// Terminate asks the process and all it has started to end.
func (*Process) Terminate() {}

// Suspend stops the process and all it has started.
func (*Process) Suspend() {}

// Resume continues what was suspended.
func (*Process) Resume() {}

func (*Process) endedBy() (os.Signal, bool) { return nil, false }
