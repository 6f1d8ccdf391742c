package pleach

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/door"
)

// Certificates expire, and authorities are replaced, while members run. So every new
// connection uses what the files hold at that time.

// reloadInterval is how often files are looked at, at most.
const reloadInterval = time.Second

// TLSFiles returns a config for [Config].TLS with this process's certificate and key
// and the certificates of the group's authorities, all from PEM files. Files that
// change are read again: connections that are open continue, and new ones use the new
// certificates. If the new files cannot be used, such as a key without its new
// certificate, the last good ones are used until they can.
//
// To replace an authority, first give all members a file with the old and the new one,
// then replace the certificates, and then remove the old authority.
func TLSFiles(cert, key, ca string) (*tls.Config, error) {
	f := &tlsFiles{paths: [3]string{cert, key, ca}}
	if _, err := f.current(nil); err != nil {
		return nil, fmt.Errorf("pleach: TLSFiles: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: f.current}, nil
}

// A certificate that expires keeps its process out at the next connection. So the log warns
// expiryNotice before, and the status tells when.
const (
	expiryNotice   = 7 * 24 * time.Hour
	expiryInterval = time.Hour
)

// expiry returns when the first of this process's certificates expires. It is zero if there
// is none, or it is not known before a connection asks for it.
func expiry(c *Config) (first time.Time) {
	if c.TLS == nil {
		return first
	}
	config, err := presentTLS(c)
	if err != nil {
		return first
	}
	for _, chain := range config.Certificates {
		if leaf, err := leafOf(&chain); err == nil && (first.IsZero() || leaf.NotAfter.Before(first)) {
			first = leaf.NotAfter
		}
	}
	return first
}

// watchExpiry warns of a certificate that expires, each time that it is looked at.
func (g *Group) watchExpiry() {
	for g.life.Err() == nil {
		if at := expiry(&g.config); !at.IsZero() && time.Until(at) < expiryNotice {
			g.log.Warn("this member's certificate expires: replace its file, or restart the process with another one", "at", at, "in", time.Until(at).Round(time.Minute))
		}
		select {
		case <-g.life.Done():
		case <-time.After(expiryInterval):
		}
	}
}

// tlsFiles is what the files have held when they were last good.
type tlsFiles struct {
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
func (f *tlsFiles) current(*tls.ClientHelloInfo) (*tls.Config, error) {
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

func (f *tlsFiles) stat() (stamps [3]stamp) {
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func (f *tlsFiles) load() (*tls.Config, error) {
	pem, err := os.ReadFile(f.paths[2])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no certificate in it: it must be a PEM file", f.paths[2])
	}
	if err := door.CheckFile(f.paths[1]); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(f.paths[0], f.paths[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.paths[0], f.paths[1], err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool}, nil
}
