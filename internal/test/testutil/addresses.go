package testutil

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
)

// FreeAddresses returns addresses of this host that processes can listen on. They stay free
// until then: on Linux, which has all of 127.0.0.0/8, no other test binary uses their host,
// and no connection has one of their ports for its own end.
func FreeAddresses(t testing.TB, n int) []string {
	t.Helper()
	addresses, err := FindAddresses(n)
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

// FindAddresses is [FreeAddresses] for examples.
func FindAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(ownHost(), "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() // when all are known
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// ownHost returns the loopback address of this process.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, 128 | byte(pid>>16)&63, byte(pid >> 8), byte(pid)}).String()
}
