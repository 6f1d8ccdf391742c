package limit

import (
	"net"
	"syscall"
	"unsafe"
)

// soPeerGroups is SO_PEERGROUPS of socket(7), and maxGroups NGROUPS_MAX.
const (
	soPeerGroups = 59
	maxGroups    = 1 << 16
)

// unixPeer returns the user and the groups that a process had when it connected.
func unixPeer(c *net.UnixConn) (p Peer) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p
	}
	_ = raw.Control(func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		if err != nil {
			return
		}
		p = Peer{UID: int(cred.Uid), Groups: append(peerGroups(fd), int(cred.Gid)), Known: true}
	})
	return p
}

// peerGroups returns the supplementary groups.
func peerGroups(fd uintptr) (groups []int) {
	gids := make([]uint32, 64)
	for {
		size := uint32(4 * len(gids))
		_, _, err := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&gids[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case err == syscall.ERANGE && len(gids) < maxGroups:
			gids = make([]uint32, maxGroups)
			continue
		case err != 0:
			return nil
		}
		for _, gid := range gids[:size/4] {
			groups = append(groups, int(gid))
		}
		return groups
	}
}
