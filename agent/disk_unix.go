//go:build linux || darwin

package agent

import "syscall"

// diskSpace is how many bytes the file system of a directory has left, and how large it is.
func diskSpace(directory string) (free, size int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(directory, &s); err != nil {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}
