package testutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA is a certificate authority that lives as long as a test. Its zero value has
// no certificate and issues self-signed ones.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a CA.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := new(CA)
	ca.cert, ca.key = ca.issue(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	return ca
}

func (ca *CA) issue(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(1)
	}
	template.Subject = pkix.Name{CommonName: "pleach test"}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	template.BasicConstraintsValid = true
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// Credentials are what a member needs for TLS, PEM-encoded so that a test can pass
// them to another process: its certificate and key, and the certificate of the CA
// that it trusts.
type Credentials struct{ Cert, Key, CA []byte }

// Issue returns credentials for a member on 127.0.0.1, or at one of FreeAddresses, that trusts
// this CA.
func (ca *CA) Issue(t testing.TB) Credentials {
	t.Helper()
	return ca.IssueNames(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(ownHost())}})
}

// IssueFor returns credentials for a member on another host.
func (ca *CA) IssueFor(t testing.TB, host net.IP) Credentials {
	t.Helper()
	return ca.IssueNames(t, &x509.Certificate{IPAddresses: []net.IP{host}})
}

// IssueNames returns credentials with the names and the end of a template, and its extended key
// usage if it has one.
func (ca *CA) IssueNames(t testing.TB, template *x509.Certificate) Credentials {
	t.Helper()
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	cert, key := ca.issue(t, template)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Credentials{Cert: encodePEM("CERTIFICATE", cert.Raw), Key: encodePEM("PRIVATE KEY", private)}
	if ca.cert != nil {
		c.CA = encodePEM("CERTIFICATE", ca.cert.Raw)
	}
	return c
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TLS returns the TLS config of these credentials. Without Cert, the config has no
// certificate.
func (c Credentials) TLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.CA)
	config := &tls.Config{RootCAs: pool}
	if c.Cert == nil {
		return config, nil
	}
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	config.Certificates = []tls.Certificate{pair}
	return config, err
}

// Config returns the TLS config of a member that trusts this CA and has a
// certificate of another one, often the same.
func (ca *CA) Config(t testing.TB, by *CA) *tls.Config {
	t.Helper()
	c := by.Issue(t)
	c.CA = encodePEM("CERTIFICATE", ca.cert.Raw)
	config, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
