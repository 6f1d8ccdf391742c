//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file for this process. The system unlocks it when the process ends. If another
// process has locked it, the error is ErrInUse.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
