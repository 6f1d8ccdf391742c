package client

import (
	"net"
	"slices"
)

// SameSocket reports whether an address, dialed on this host, is that of a socket
// which listens at another one. It resolves no name but localhost.
func SameSocket(address, listening string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	socketHost, socketPort, _ := net.SplitHostPort(listening)
	ip, socket := net.ParseIP(host), net.ParseIP(socketHost)
	switch {
	case port != socketPort || socket == nil:
		return false
	case host == "localhost":
		return socket.IsLoopback() || socket.IsUnspecified()
	case ip == nil:
		return false
	case socket.IsUnspecified():
		return ip.IsLoopback() || ip.IsUnspecified() || isInterface(ip)
	}
	return ip.Equal(socket)
}

// isInterface reports whether an address is one of this host's interfaces.
func isInterface(ip net.IP) bool {
	addresses, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// Unspecific reports whether a host stands for all of this machine's addresses.
func Unspecific(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// Dialable reports whether other members can dial an address: it names a host and a
// port.
func Dialable(address string) bool {
	host, port, err := net.SplitHostPort(address)
	return err == nil && !Unspecific(host) && port != "0" && port != ""
}

// HostTowards returns this host's address on the way to another.
func HostTowards(address string) string {
	conn, err := net.Dial("udp", address) // nothing is sent
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}
