package admission

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
)

// The kernel's sock_diag(7): one request asks for one socket.
const (
	diagByFamily   = 20
	diagRequest    = 72 // header, 8 bytes, and the socket's ID of 48
	diagUser       = 80 // where the reply has the user
	diagState      = 17
	tcpEstablished = 1
)

// userOf returns the user whose process has opened a connection from this host. It reports
// false for connections from elsewhere, and for those that were closed: the kernel has
// forgotten whose they were.
func userOf(c net.Conn) (user uint32, ok bool) {
	client, err1 := netip.ParseAddrPort(c.RemoteAddr().String())
	server, err2 := netip.ParseAddrPort(c.LocalAddr().String())
	if err1 != nil || err2 != nil {
		return 0, false
	}
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_INET_DIAG)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd)
	if syscall.Sendto(fd, askForSocket(client, server), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return 0, false
	}
	reply := make([]byte, 512)
	n, _, err := syscall.Recvfrom(fd, reply, syscall.MSG_DONTWAIT) // it came with the request
	if err != nil || n < diagUser+4 || binary.NativeEndian.Uint16(reply[4:]) != diagByFamily ||
		reply[diagState] != tcpEstablished {
		return 0, false
	}
	return binary.NativeEndian.Uint32(reply[diagUser:]), true
}

// askForSocket asks for the socket between two addresses, of which the first is its own.
func askForSocket(own, other netip.AddrPort) []byte {
	b := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(b, diagRequest)
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	binary.NativeEndian.PutUint16(b[6:], syscall.NLM_F_REQUEST)
	b[16], b[17] = syscall.AF_INET, syscall.IPPROTO_TCP
	from, to := own.Addr().Unmap(), other.Addr().Unmap()
	if from.Is6() {
		b[16] = syscall.AF_INET6
	}
	binary.NativeEndian.PutUint32(b[20:], 1<<tcpEstablished)
	binary.BigEndian.PutUint16(b[24:], own.Port())
	binary.BigEndian.PutUint16(b[26:], other.Port())
	copy(b[28:], from.AsSlice())
	copy(b[44:], to.AsSlice())
	for i := 64; i < diagRequest; i++ {
		b[i] = 0xff // any cookie
	}
	return b
}
