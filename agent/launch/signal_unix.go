//go:build unix

package launch

import "syscall"

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

// endedBy returns the signal that ended the process, or 0.
func (p *Process) endedBy() syscall.Signal {
	if status := p.State().Sys().(syscall.WaitStatus); status.Signaled() {
		return status.Signal()
	}
	return 0
}
