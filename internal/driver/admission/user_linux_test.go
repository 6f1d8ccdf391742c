package admission

import (
	"net"
	"os"
	"testing"
)

// connect returns both ends of a connection on this host.
func connect(t *testing.T, address string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestUserOf(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		client, server := connect(t, address)
		if user, ok := userOf(server); !ok || int(user) != os.Getuid() {
			t.Errorf("%s: user %d, %v", address, user, ok)
		}
		client.Close()
		if user, ok := userOf(server); ok {
			t.Errorf("%s: a connection that was closed is of user %d", address, user)
		}
	}
}

// A host with too many visits in vain keeps out the users that made them: this one has an
// account of its own.
func TestUsersOfAHostHaveAccounts(t *testing.T) {
	g := &Gate{Visits: 4 * credit, Waiting: 1}
	for range 2 * credit {
		g.Enter(&caller{from: "127.0.0.1:1"}).Leave(false) // the kernel does not know it
	}
	_, server := connect(t, "127.0.0.1:0")
	v := g.Enter(server)
	if v == nil {
		t.Fatal("another user's visits keep this one out")
	}
	v.Leave(false)
	for range 2 * credit {
		g.Enter(server).Leave(false)
	}
	if g.Enter(server) != nil {
		t.Error("a user comes as often as it wants")
	}
}
