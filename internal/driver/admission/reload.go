package admission

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Certificates expire, and authorities are replaced, while members run. So every new
// connection uses what the files hold at that time.

// Files returns a config that follows the PEM files of a certificate, its key and the
// authorities of a group.
func Files(cert, key, ca string) (*tls.Config, error) {
	f := &followed[*tls.Config]{
		paths: []string{cert, key, ca},
		load:  func() (*tls.Config, error) { return loadTLS(cert, key, ca) },
	}
	if err := f.begin(); err != nil {
		return nil, err
	}
	current := func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil }
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: current}, nil
}

func loadTLS(cert, key, ca string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no certificate in it: it must be a PEM file", ca)
	}
	if err := CheckFile(key); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool,
		ClientCAs: pool,
	}, nil
}

// Present returns the config that a new connection would have.
func Present(c *tls.Config) (*tls.Config, error) {
	if c.GetConfigForClient == nil {
		return c, nil
	}
	current, err := c.GetConfigForClient(&tls.ClientHelloInfo{})
	return cmp.Or(current, c), err
}

// Leaf returns the first certificate of a chain.
func Leaf(chain *tls.Certificate) (*x509.Certificate, error) {
	switch {
	case chain.Leaf != nil:
		return chain.Leaf, nil
	case len(chain.Certificate) == 0:
		return nil, errors.New("the chain is empty")
	}
	return x509.ParseCertificate(chain.Certificate[0])
}

// NamesMember reports whether a config's own certificate names a member by URI. A certificate
// that only a callback knows is asked for as an outgoing or incoming connection would.
func NamesMember(c *tls.Config) bool {
	config, err := Present(c)
	if err != nil {
		return false
	}
	chains := config.Certificates
	if config.GetCertificate != nil {
		if chain, err := config.GetCertificate(&tls.ClientHelloInfo{}); err == nil && chain != nil {
			chains = append(slices.Clone(chains), *chain)
		}
	}
	return slices.ContainsFunc(chains, func(chain tls.Certificate) bool {
		leaf, err := Leaf(&chain)
		return err == nil && HasMemberURI(leaf)
	})
}

// Expiry returns when the first of a config's certificates expires. It is zero if there is
// none, or it is not known before a connection asks for it.
func Expiry(c *tls.Config) (first time.Time) {
	if c == nil {
		return first
	}
	config, err := Present(c)
	if err != nil {
		return first
	}
	for _, chain := range config.Certificates {
		if leaf, err := Leaf(&chain); err == nil && (first.IsZero() || leaf.NotAfter.Before(first)) {
			first = leaf.NotAfter
		}
	}
	return first
}
