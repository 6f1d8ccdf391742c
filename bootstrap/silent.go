package bootstrap

import (
	"net"
	"net/netip"
	"slices"
)

// silent are the connections to a rendezvous that have not registered yet. When there are too
// many, the oldest one of the host with the most is closed: a process of the job registers at
// once, so that strangers who say nothing cannot keep it out.
type silent struct {
	limit int
	conns []net.Conn // oldest first
}

func (s *silent) add(c net.Conn) {
	if len(s.conns) >= s.limit {
		i := s.worst()
		s.conns[i].Close() // its reader fails
		s.conns = slices.Delete(s.conns, i, i+1)
	}
	s.conns = append(s.conns, c)
}

func (s *silent) remove(c net.Conn) {
	if i := slices.Index(s.conns, c); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
}

// worst returns the index of the connection to close.
func (s *silent) worst() int {
	count := make(map[netip.Addr]int)
	for _, c := range s.conns {
		count[hostOf(c.RemoteAddr())]++
	}
	worst := 0
	for i, c := range s.conns {
		if count[hostOf(c.RemoteAddr())] > count[hostOf(s.conns[worst].RemoteAddr())] {
			worst = i
		}
	}
	return worst
}

// hostOf returns the IP address of an end of a connection.
func hostOf(a net.Addr) netip.Addr {
	return netip.MustParseAddrPort(a.String()).Addr().Unmap().WithZone("")
}
