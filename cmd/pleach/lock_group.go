//go:build unix && !linux

package main

import "syscall"

func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
