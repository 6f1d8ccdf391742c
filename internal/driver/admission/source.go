package admission

import "net"

// Source returns where a connection comes from, as [Gate] tells hosts apart: an IP address, or the
// /64 of an IPv6 address. For one that a process of this host has opened, it returns the user as
// well, where the system says so (Linux).
func Source(c net.Conn) (host string, user uint32, known bool) {
	host = hostOf(c.RemoteAddr())
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || host == "::/64" {
		user, known = userOf(c)
	}
	return host, user, known
}
