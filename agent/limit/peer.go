package limit

import (
	"fmt"
	"net"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Peer is the process at the other end of a connection.
type Peer struct {
	// Host is the IP address, or empty for a Unix socket.
	Host string
	// UID is the user, and Groups the groups of a process that has connected to a Unix socket. Known
	// reports whether the system has told the user.
	UID    int
	Groups []int
	Known  bool
}

// String names the peer as a source of connections.
func (p *Peer) String() string {
	switch {
	case p.Known && p.Host == "":
		return fmt.Sprint("user ", p.UID)
	case p.Known:
		return fmt.Sprintf("%s user %d", p.Host, p.UID)
	case p.Host == "":
		return "local"
	}
	return p.Host
}

// peerOf returns the peer of a connection.
func peerOf(c net.Conn) Peer {
	if u, ok := c.(*net.UnixConn); ok {
		return unixPeer(u)
	}
	host, user, known := admission.Source(c)
	return Peer{Host: host, UID: int(user), Known: known}
}
