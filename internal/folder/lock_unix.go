//go:build unix

package folder

import (
	"os"
	"syscall"
)

// lock locks a file for this process. The system unlocks it when the process ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
