package door

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificates expire, and authorities are replaced, while members run. So every new
// connection uses what the files hold at that time.

// reloadInterval is how often files are looked at, at most.
const reloadInterval = time.Second

// Files returns a config that follows the PEM files of a certificate, its key and the
// authorities of a group.
func Files(cert, key, ca string) (*tls.Config, error) {
	f := &files{paths: [3]string{cert, key, ca}}
	if _, err := f.current(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: f.current}, nil
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

// files is what the files have held when they were last good.
type files struct {
	paths [3]string // certificate, key, authorities

	mu     sync.Mutex
	config *tls.Config
	stamps [3]stamp
	looked time.Time
}

// stamp tells whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
}

// current is the GetConfigForClient of the config.
func (f *files) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config != nil && time.Since(f.looked) < reloadInterval {
		return f.config, nil
	}
	f.looked = time.Now()
	stamps := f.stat()
	if f.config != nil && stamps == f.stamps {
		return f.config, nil
	}
	switch c, err := f.load(); {
	case err == nil:
		f.config, f.stamps = c, stamps
	case f.config == nil:
		return nil, err
	}
	return f.config, nil
}

func (f *files) stat() (stamps [3]stamp) {
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func (f *files) load() (*tls.Config, error) {
	pem, err := os.ReadFile(f.paths[2])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no certificate in it: it must be a PEM file", f.paths[2])
	}
	if err := CheckFile(f.paths[1]); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(f.paths[0], f.paths[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.paths[0], f.paths[1], err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool}, nil
}
