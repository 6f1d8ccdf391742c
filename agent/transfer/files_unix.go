//go:build linux || darwin

package transfer

import (
	"os"
	"syscall"
)

// freeSpace is how many bytes this process may still write to the file system of a file.
func freeSpace(file *os.File) (free int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}

// lock keeps other processes from writing to a partial file, as another member on this
// host that has the same directory. The lock ends with the process.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
