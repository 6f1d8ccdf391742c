package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ownProgram is the program of this process, even if its file was replaced meanwhile.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// becomeSubreaper keeps descendants whose parents have ended below this process.
func becomeSubreaper() {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0)
}

const setChildSubreaper = 36 // of linux/prctl.h

// bootClock is the time since the host was started, with the time in which it was suspended.
func bootClock() time.Duration {
	var seconds float64
	b, _ := os.ReadFile("/proc/uptime") // every Linux that pleach lock runs on has it
	_, _ = fmt.Sscan(string(b), &seconds)
	return time.Duration(seconds * float64(time.Second))
}

// killDescendants kills all descendants of this process but spared children, and those that they
// start meanwhile. It returns those that have not ended.
func killDescendants(spared []int) []int {
	for deadline := time.Now().Add(killTime); ; time.Sleep(time.Millisecond) {
		pids := descendants(os.Getpid(), spared)
		if len(pids) == 0 || !time.Now().Before(deadline) {
			return pids
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// descendants returns the descendants of a process that have not ended, without spared ones and
// their descendants.
func descendants(root int, spared []int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	children, ended := make(map[int][]int), make(map[int]bool)
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var state string
		var parent int
		_, err = fmt.Sscan(string(b[bytes.LastIndexByte(b, ')')+1:]), &state, &parent)
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && !slices.Contains(spared, pid) {
			children[parent] = append(children[parent], pid)
			ended[pid] = state == "Z" || state == "X"
		}
	}
	for left := children[root]; len(left) > 0; left = left[1:] {
		left = append(left, children[left[0]]...)
		if !ended[left[0]] {
			pids = append(pids, left[0])
		}
	}
	return pids
}
