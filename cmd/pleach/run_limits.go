//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// What a process needs: two pipes and a handle; and what this one needs itself.
const (
	filesPerProcess = 3
	filesOfOurOwn   = 32
)

// checkOpenFiles says what to do before the work fails half way.
func checkOpenFiles(size int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // then the system will say
	}
	need, have := uint64(filesPerProcess*size+filesOfOurOwn), uint64(limit.Cur)
	if need <= have {
		return nil
	}
	fit := (max(have, filesOfOurOwn+filesPerProcess) - filesOfOurOwn) / filesPerProcess
	return fmt.Errorf("-n %d: %d files would be open, and the limit is %d: raise it by ulimit -n %d, or choose -n %d or less", size, need, have, need, fit)
}
