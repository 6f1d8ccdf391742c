package tcp

// TLS between members is mutual, and verified in full for every connection. The
// config of a connection is the one that is current when it opens, so that
// certificates and authorities can be rotated while members run.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"github.com/pleach-go/pleach/protocol"
)

// Claim is what the other side of a connection says it is.
type Claim struct {
	// Rank is the rank that it claims, or that was dialed. It is [protocol.NoRank] for
	// the member that answers a [Request].
	Rank protocol.Rank
	// Address is the address that was dialed. It is empty if the other side has
	// dialed.
	Address string
	// Certificates is its chain, verified, with its own certificate first. It is empty
	// without TLS.
	Certificates []*x509.Certificate
}

// mutual makes both sides show a certificate, and refuses settings that would
// admit a process without one.
func mutual(c *tls.Config) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	c = c.Clone()
	if c.RootCAs == nil {
		c.RootCAs = c.ClientCAs
	}
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	switch {
	case c.InsecureSkipVerify:
		return nil, errors.New("TLS: InsecureSkipVerify would admit other processes, leave it unset")
	case c.RootCAs == nil && c.GetConfigForClient == nil:
		// The system's roots would admit half of the internet.
		return nil, errors.New("TLS: no CA, set RootCAs to the group's")
	}
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	// A resumed session would not be verified with the current authorities.
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	return c, nil
}

// currentTLS returns the config of a new connection. It is that of GetConfigForClient,
// if there is one, also for a connection that this side dials.
func currentTLS(c *tls.Config, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c.GetConfigForClient == nil {
		return c, nil
	}
	current, err := c.GetConfigForClient(hello)
	if err != nil {
		return nil, err
	}
	if current == nil {
		current = c
	} else {
		current, err = mutual(current)
		if err != nil {
			return nil, err
		}
	}
	if current.RootCAs == nil { // the system's roots would do instead
		return nil, errors.New("TLS: GetConfigForClient returned no config with RootCAs")
	}
	return current, nil
}

// acceptTLS does the server's side of a TLS handshake.
func acceptTLS(ctx context.Context, raw net.Conn, cfg *tls.Config) (*tls.Conn, error) {
	cfg = cfg.Clone()
	if cfg.GetConfigForClient != nil {
		base := cfg.Clone()
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return currentTLS(base, hello) }
	}
	c := tls.Server(raw, cfg)
	return c, c.HandshakeContext(ctx)
}

// dialTLS does the client's side of a TLS handshake. The chain of the other side must
// lead to a current authority. Its names must include the host that was dialed, or
// what verify asks for.
func dialTLS(ctx context.Context, raw net.Conn, cfg *tls.Config, to Claim,
	verify func(Claim) error,
) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(to.Address)
	if err != nil {
		return nil, err
	}
	cfg, err = currentTLS(cfg, &tls.ClientHelloInfo{Conn: raw})
	if err != nil {
		return nil, err
	}
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	name, user := cfg.ServerName, cfg.VerifyPeerCertificate
	cfg.InsecureSkipVerify, cfg.VerifyPeerCertificate = true, nil // what follows verifies instead
	then := cfg.VerifyConnection
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		chains, err := verifyServer(cfg, s.PeerCertificates)
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		to.Certificates = s.PeerCertificates
		if verify != nil {
			err = verify(to)
		} else if err = s.PeerCertificates[0].VerifyHostname(name); err != nil {
			err = &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		if err == nil && user != nil {
			err = user(rawChain(s.PeerCertificates), chains)
		}
		if err == nil && then != nil {
			s.VerifiedChains = chains
			err = then(s)
		}
		return err
	}
	c := tls.Client(raw, cfg)
	return c, c.HandshakeContext(ctx)
}

// verifyServer verifies the chain of a server, without its name.
func verifyServer(cfg *tls.Config, chain []*x509.Certificate) ([][]*x509.Certificate, error) {
	options := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
	if cfg.Time != nil {
		options.CurrentTime = cfg.Time()
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	return chain[0].Verify(options)
}

func rawChain(chain []*x509.Certificate) (raw [][]byte) {
	for _, c := range chain {
		raw = append(raw, c.Raw)
	}
	return raw
}
