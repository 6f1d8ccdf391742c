package pleach_test

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

// authority is a CA made for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := new(authority)
	a.cert, a.key = a.issue(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate; an authority's first is signed by itself.
func (a *authority) issue(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.Subject = pkix.Name{CommonName: "pleach test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.BasicConstraintsValid = true
	parent, signer := a.cert, a.key
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

// papers are a certificate for a member on loopback, its key and the authority's
// certificate, as another process can be given them.
type papers struct{ Cert, Key, CA []byte }

func (a *authority) papers(t testing.TB) papers {
	t.Helper()
	cert, key := a.issue(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return papers{encode("CERTIFICATE", cert.Raw), encode("PRIVATE KEY", private), encode("CERTIFICATE", a.cert.Raw)}
}

// config is what a member with these papers uses.
func (p papers) config() (*tls.Config, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.CA)
	c := &tls.Config{RootCAs: pool}
	if p.Cert == nil {
		return c, nil
	}
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	c.Certificates = []tls.Certificate{pair}
	return c, err
}
