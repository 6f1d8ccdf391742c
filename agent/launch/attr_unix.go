//go:build unix && !linux

package launch

import "syscall"

// attributes makes a process the leader of a process group. Only Linux can kill
// a process with its parent.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
