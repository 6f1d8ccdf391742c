package main

import "syscall"

// groupOfItsOwn lets a process start a group, and die with this one even if it
// is killed and cannot end anybody any more.
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
