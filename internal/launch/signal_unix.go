//go:build unix

package launch

import (
	"os"
	"syscall"
)

// Kill ends the process and all it has started, at once (SIGKILL).
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Terminate asks the process and all it has started to end (SIGTERM).
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Suspend stops the process and all it has started (SIGSTOP).
func (p *Process) Suspend() { p.signal(syscall.SIGSTOP) }

// Resume continues what was suspended (SIGCONT).
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// signal sends to the process group. If no process is left in it, that is as
// well.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.PID(), s) }

// endedBy returns the signal that ended the process, if one did.
func (p *Process) endedBy() (os.Signal, bool) {
	status := p.State().Sys().(syscall.WaitStatus)
	return status.Signal(), status.Signaled()
}
