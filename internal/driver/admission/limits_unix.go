//go:build unix

package admission

import "syscall"

// OpenFileLimit returns how many files this process may have open, if the system
// tells.
func OpenFileLimit() (limit uint64, ok bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true
}
