package testutil

import (
	"net"
	"testing"
)

// FreeAddresses returns addresses of this host that processes can listen on.
func FreeAddresses(t testing.TB, n int) (addresses []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are known
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}
