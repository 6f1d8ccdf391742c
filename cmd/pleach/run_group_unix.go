//go:build unix && !linux

package main

import "syscall"

// groupOfItsOwn lets a process start a group. Here nothing ends it if this one
// is killed.
func groupOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
