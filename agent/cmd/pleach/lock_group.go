//go:build unix && !linux

package main

import (
	"os"
	"syscall"
	"time"
)

func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownProgram() (string, error) { return os.Executable() }

func becomeSubreaper() {}

// killDescendants does nothing: the process group is all that this system knows of a command.
func killDescendants([]int) []int { return nil }

func descendants(int, []int) []int { return nil }

// bootClock is the time of day: this system has no clock that two processes share, and that is not set.
func bootClock() time.Duration { return time.Duration(time.Now().UnixNano()) }
