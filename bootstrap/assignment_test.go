package bootstrap

import (
	"net"
	"strings"
	"testing"
)

func TestCheckOfAssignmentsMadeByHand(t *testing.T) {
	for want, place := range map[string]Assignment{
		"size 0":                            {},
		"rank 2":                            {Rank: 2, Size: 2},
		"the launcher does not provide the": {Size: 2},
		"1 addresses for 2 processes":       {Size: 2, Addresses: []string{"a:1"}},
		"write host:port":                   {Size: 1, Addresses: []string{"a"}},
	} {
		if err := place.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", place, err, want)
		}
		if l, err := place.Listener(); err == nil {
			l.Close()
			t.Errorf("%+v: it listens", place)
		}
	}
	if err := (Assignment{Size: 1, Addresses: []string{"a:1"}}).Check(); err != nil {
		t.Error(err)
	}
}

// freeAddress is free now, and most likely a moment later.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

// A name that nobody knows is listened at all the same, as in a Kubernetes pod
// that has just started; an IP address only as it is.
func TestListener(t *testing.T) {
	for _, c := range []struct {
		host     string
		anywhere bool
	}{{"job-0.subdomain.invalid", true}, {"127.0.0.1", false}, {"localhost", false}} {
		l, err := Assignment{Size: 1, Addresses: []string{freeAddress(t, c.host)}}.Listener()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().(*net.TCPAddr).IP.IsUnspecified(); got != c.anywhere {
			t.Errorf("%s: listens at %v", c.host, l.Addr())
		}
		l.Close()
	}
}
