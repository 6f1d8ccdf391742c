//go:build !unix

package launch

import "syscall"

// Here there are no process groups, and the only signal kills.

func attributes(bool) *syscall.SysProcAttr { return nil }

// Kill ends the process at once.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Terminate ends the process at once, as it cannot be asked.
func (p *Process) Terminate() { p.Kill() }

// Suspend does nothing.
func (*Process) Suspend() {}

// Resume does nothing.
func (*Process) Resume() {}

func (*Process) endedBy() syscall.Signal { return 0 }
