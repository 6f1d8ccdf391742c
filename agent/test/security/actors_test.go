package security

// The actors of the table, and the settings of a group.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// group is the name of the group that is attacked.
const group = "web"

// uriTLS returns the config of a process whose certificate has one URI.
func uriTLS(t testing.TB, ca *testutil.CA, path string) *tls.Config {
	t.Helper()
	u, err := url.Parse("spiffe://example.org/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return config(t, ca.IssueNames(t, &x509.Certificate{URIs: []*url.URL{u}}))
}

// hostTLS returns the config of a process whose certificate names a host.
func hostTLS(t testing.TB, ca *testutil.CA, host string) *tls.Config {
	t.Helper()
	return config(t, ca.IssueFor(t, net.ParseIP(host)))
}

func config(t testing.TB, c testutil.Credentials) *tls.Config {
	t.Helper()
	config, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// timed returns a context that ends with the test, or earlier.
func timed(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// create makes the first member of a group.
func create(t testing.TB, c pleach.Config) *pleach.Group {
	t.Helper()
	c.Group = group
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	g, err := pleach.Create(timed(t, 10*time.Second), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Abort() })
	return g
}

// join makes another member.
func join(t testing.TB, c pleach.Config, seeds ...string) *pleach.Group {
	t.Helper()
	c.Group = group
	g, err := pleach.Join(timed(t, 20*time.Second), c, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Abort() })
	return g
}

// refused fails the test unless an attempt was refused for good: an attempt that only got
// no answer shows nothing.
func refused(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s: let in", what)
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s: no answer: %v", what, err)
	}
}

// dial opens a connection, with TLS if there is a config.
func dial(t testing.TB, address string, c *tls.Config) net.Conn {
	t.Helper()
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	if c == nil {
		return raw
	}
	c = c.Clone()
	c.InsecureSkipVerify = true
	return tls.Client(raw, c)
}

// sayHello sends a Hello and returns the answer.
func sayHello(c net.Conn, h *wire.Hello) (wire.Hello, error) {
	if _, err := c.Write(wire.AppendFrame(nil, wire.AppendHello(nil, h))); err != nil {
		return wire.Hello{}, err
	}
	b, err := wire.NewReader(c, wire.MaxHelloFrame).Next()
	if err != nil {
		return wire.Hello{}, err
	}
	return wire.DecodeHello(b)
}
