package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

func TestFramesArriveAsSentUnderTLS(t *testing.T) {
	ca := testutil.NewCA(t)
	exchange(t, startGroup(t, 3, Config{TLS: ca.Config(t, ca)}))
}

func TestTLSDialedByBoth(t *testing.T) {
	ca := testutil.NewCA(t)
	for range 10 {
		m := startGroup(t, 2, Config{TLS: ca.Config(t, ca)})
		mustSend(t, m[0], 1, []byte("a"))
		mustSend(t, m[1], 0, []byte("b"))
		eventually(t, "both frames", func() bool { return len(m[0].received(1)) == 1 && len(m[1].received(0)) == 1 })
		for i := range m {
			_ = m[i].Close()
		}
	}
}

// unknownHello is right in everything: only the certificate is missing.
func unknownHello() []byte {
	h := wire.Hello{Group: "test", Size: 4, From: 1, Incarnation: 1, Attempt: 1}
	return wire.AppendFrame(nil, wire.AppendHello(nil, &h))
}

// unknownHelloOf is that of a rank of an open group.
func unknownHelloOf(rank protocol.Rank) []byte {
	h := wire.Hello{Group: "test", From: rank, Incarnation: 1, Attempt: 1}
	return wire.AppendFrame(nil, wire.AppendHello(nil, &h))
}

func TestConnectionsWithoutCertificateAreRefused(t *testing.T) {
	ca := testutil.NewCA(t)
	current := ca.Config(t, ca) // it asks for no certificate of clients
	program := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current, nil }}
	for name, cfg := range map[string]*tls.Config{"one config": ca.Config(t, ca), "one for each client": program} {
		t.Run(name, func(t *testing.T) { testNoCertificate(t, ca, cfg) })
	}
}

func testNoCertificate(t *testing.T, ca *testutil.CA, cfg *tls.Config) {
	m := alone(t, Config{TLS: cfg})
	inject := append(unknownHello(), wire.AppendFrame(nil, []byte("injected"))...)

	none := ca.Config(t, ca)
	none.Certificates = nil
	old := ca.Config(t, ca)
	old.MaxVersion = tls.VersionTLS12
	for name, cfg := range map[string]*tls.Config{
		"none":           none,
		"signed by self": ca.Config(t, new(testutil.CA)),
		"of another CA":  ca.Config(t, testutil.NewCA(t)),
		"TLS 1.2":        old,
	} {
		cfg.ServerName = "127.0.0.1"
		raw := dialRaw(t, m, nil)
		c := tls.Client(raw, cfg)
		if c.Handshake() == nil {
			_, _ = c.Write(inject)
		}
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%s: was answered", name)
		}
	}
	plain := dialRaw(t, m, inject)
	expectClosed(t, plain)
	eventually(t, "refusals", func() bool { return m.Stats().Refused == 5 })
	if m.story(1) != "" || len(m.received(1)) > 0 {
		t.Error("an unknown process was admitted")
	}
}

// A process that listens at a peer's address has to show a certificate too.
func TestFalseListenerIsRefused(t *testing.T) {
	ca := testutil.NewCA(t)
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	m := start(t, Config{Addresses: addresses, Listener: listeners[0], TLS: ca.Config(t, ca)})
	false1 := start(t, Config{Addresses: addresses, Rank: 1, Listener: listeners[1], TLS: ca.Config(t, new(testutil.CA))})
	mustSend(t, m, 1, []byte("secret"))
	eventually(t, "down", func() bool { return m.lastCause(1) != nil })
	if len(false1.received(0)) > 0 {
		t.Error("sent to an unknown process")
	}
}

func TestTLSHandshakeMessagesAreBounded(t *testing.T) {
	ca := testutil.NewCA(t)
	m := alone(t, Config{TLS: ca.Config(t, ca)})

	// Certificates that would take megabytes.
	cfg := ca.Config(t, ca)
	cfg.ServerName = "127.0.0.1"
	for range 400 {
		cfg.Certificates[0].Certificate = append(cfg.Certificates[0].Certificate, cfg.Certificates[0].Certificate[0])
	}
	raw := dialRaw(t, m, nil)
	counted := &countingConn{Conn: raw}
	c := tls.Client(counted, cfg)
	if c.Handshake() == nil {
		_, _ = c.Write(unknownHello())
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("was answered")
	}
	if counted.written < maxHandshake {
		t.Errorf("only %d bytes were sent; the test is no test", counted.written)
	}
	eventually(t, "refusal", func() bool { return m.Stats().Refused == 1 })
	if m.story(1) != "" {
		t.Error("was let in")
	}
}

type countingConn struct {
	net.Conn
	written int
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written += n
	return n, err
}

func TestConfigIsChecked(t *testing.T) {
	ca := testutil.NewCA(t)
	insecure := ca.Config(t, ca)
	insecure.InsecureSkipVerify = true
	good := func() Config { return Config{Addresses: []string{"127.0.0.1:0", "127.0.0.1:0"}} }
	for name, change := range map[string]func(*Config){
		"no addresses":    func(c *Config) { c.Addresses = nil },
		"negative rank":   func(c *Config) { c.Rank = -1 },
		"rank too high":   func(c *Config) { c.Rank = 2 },
		"long group name": func(c *Config) { c.Group = string(make([]byte, 256)) },
		"small queue":     func(c *Config) { c.QueueBytes = 1000 },
		"open, too high":  func(c *Config) { c.Open, c.Rank = true, MaxRanks },
		"open, nowhere":   func(c *Config) { c.Open, c.Rank = true, 2 },
		"no own address":  func(c *Config) { c.Addresses[0] = "" },
		"negative dial":   func(c *Config) { c.DialTimeout = -1 },
		"negative hello":  func(c *Config) { c.HandshakeTimeout = -1 },
		"negative reply":  func(c *Config) { c.RequestTimeout = -1 },
		"negative pause":  func(c *Config) { c.BackoffMin = -1 },
		"negative user":   func(c *Config) { c.UserTimeout = -1 },
		"negative idle":   func(c *Config) { c.IdleTimeout = -1 },
		"negative frame":  func(c *Config) { c.MaxFrame = -1 },
		"negative memory": func(c *Config) { c.SharedBytes = -1 },
		"backoffs":        func(c *Config) { c.BackoffMin = time.Minute },
		"no CA":           func(c *Config) { c.TLS = &tls.Config{} },
		"insecure":        func(c *Config) { c.TLS = insecure },
		"no such address": func(c *Config) { c.Addresses[0] = "256.0.0.1:x" },
	} {
		cfg := good()
		change(&cfg)
		if tr, err := New(cfg); err == nil {
			_ = tr.Close()
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	tr, err := New(good())
	if err != nil {
		t.Fatal(err)
	}
	if tr.Addr().(*net.TCPAddr).Port == 0 {
		t.Error("no port")
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// A GetConfigForClient that returns nothing does not fall back to the roots of the system.
func TestNoConfigMeansNoAuthority(t *testing.T) {
	c, err := mutual(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if current, err := currentTLS(c, &tls.ClientHelloInfo{}); err == nil {
		t.Errorf("RootCAs %v, ClientCAs %v", current.RootCAs, current.ClientCAs)
	}
}

// A member that dials asks the functions of its program, too: with the chains that it has
// verified, and after it has.
func TestProgramVerifiesServers(t *testing.T) {
	checkGoroutines(t)
	ca := testutil.NewCA(t)
	refused := errors.New("refused")
	for name, hook := range map[string]func(c *tls.Config, ask func(chains int) error){
		"certificate": func(c *tls.Config, ask func(int) error) {
			c.VerifyPeerCertificate = func(_ [][]byte, chains [][]*x509.Certificate) error { return ask(len(chains)) }
		},
		"connection": func(c *tls.Config, ask func(int) error) {
			c.VerifyConnection = func(s tls.ConnectionState) error { return ask(len(s.VerifiedChains)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			listeners, addresses := listen(t, 2)
			var asked atomic.Int32
			var refuses atomic.Bool
			refuses.Store(true)
			mine := ca.Config(t, ca)
			hook(mine, func(chains int) error {
				asked.Add(1)
				if chains != 1 {
					t.Errorf("%d chains are verified", chains)
				}
				if refuses.Load() {
					return refused
				}
				return nil
			})
			a := start(t, Config{Addresses: addresses, Listener: listeners[0], TLS: mine})
			b := start(t, Config{Rank: 1, Addresses: addresses, Listener: listeners[1], TLS: ca.Config(t, ca)})
			mustSend(t, a, 1, []byte("refused"))
			eventually(t, "it is asked", func() bool { return asked.Load() > 0 })
			if n := len(b.received(0)); n > 0 {
				t.Errorf("%d frames for a server that the program has refused", n)
			}
			refuses.Store(false)
			eventually(t, "a connection", func() bool { return a.Send(1, []byte("again")) == nil && len(b.received(0)) > 0 })
		})
	}
}

// Members whose certificates are of an authority that the group's has certified trust each other: both
// sides send the whole chain.
func TestCertificatesOfAnIntermediateAuthority(t *testing.T) {
	sign := func(name string, c, by *x509.Certificate, byKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c.SerialNumber, c.Subject = big.NewInt(1), pkix.Name{CommonName: name}
		c.NotBefore, c.NotAfter, c.BasicConstraintsValid = time.Now().Add(-time.Hour), time.Now().Add(time.Hour), true
		if by == nil {
			by, byKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return signed, key
	}
	root, rootKey := sign("root", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	middle, middleKey := sign("middle", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, root, rootKey)
	leaf, key := sign("leaf", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageClientAuth,
			x509.ExtKeyUsageServerAuth,
		},
	}, middle, middleKey)
	roots := x509.NewCertPool()
	roots.AddCert(root)
	m := startGroup(t, 2,
		Config{TLS: &tls.Config{
			RootCAs:      roots,
			Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw, middle.Raw}, PrivateKey: key}},
		}})
	connect(t, m[0], m[1])
}
