//go:build unix

package limit

import "syscall"

// descriptors is how many descriptors this process may open.
func descriptors() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return maxConnections
	}
	return int(min(uint64(r.Cur), 1<<20))
}
