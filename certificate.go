package pleach

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// Members dial each other by address, and TLS compares that with the certificate. A
// process whose certificate does not name its own host could dial the others, and
// would be a member that none of them can dial. So it is told before it opens anything.

// CertificateError is returned when other members could not dial this process,
// because Config.TLS has no certificate for its host.
type CertificateError struct {
	// Host is what the other members compare the certificate with: the host of this
	// process's address, or TLS.ServerName if that is set.
	Host string
	// ValidFor are the DNS names and IP addresses that the certificates name.
	ValidFor []string
	Err      error
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("other members cannot dial this process: no certificate in Config.TLS is valid for %s, only for %v: %v", e.Host, e.ValidFor, e.Err)
}

// Unwrap returns the error of package x509.
func (e *CertificateError) Unwrap() error { return e.Err }

// checkCertificate returns an error if no certificate of this process is valid for its
// host. It cannot check what GetCertificate would return.
func (c *Config) checkCertificate(host string) error {
	if c.TLS == nil || c.TLS.GetCertificate != nil {
		return nil
	}
	if c.TLS.ServerName != "" {
		host = c.TLS.ServerName
	}
	e := &CertificateError{Host: host, Err: errors.New("there is none")}
	for _, chain := range c.TLS.Certificates {
		leaf, err := leafOf(&chain)
		if err == nil {
			if err = leaf.VerifyHostname(host); err == nil {
				return nil
			}
			e.ValidFor = append(e.ValidFor, namesOf(leaf)...)
		}
		e.Err = err
	}
	return e
}

// leafOf returns the first certificate of a chain.
func leafOf(chain *tls.Certificate) (*x509.Certificate, error) {
	switch {
	case chain.Leaf != nil:
		return chain.Leaf, nil
	case len(chain.Certificate) == 0:
		return nil, errors.New("the chain is empty")
	}
	return x509.ParseCertificate(chain.Certificate[0])
}

// namesOf returns what a certificate is valid for.
func namesOf(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// hostOf is the host of an address, or the address if it has no port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
