package pleach

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"testing"

	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// certificate is one with URIs, DNS names and IP addresses; which is which shows.
func certificate(t *testing.T, names ...string) *x509.Certificate {
	t.Helper()
	c := new(x509.Certificate)
	for _, name := range names {
		if u, err := url.Parse(name); err == nil && u.Scheme != "" {
			c.URIs = append(c.URIs, u)
		} else if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return c
}

func TestVerifyClaim(t *testing.T) {
	v := &membership.View{Number: 7, Slots: 4, Members: membership.MembersOf(
		membership.Member{Rank: 1, Identity: "one", Address: "10.0.0.1:7000"}, membership.Member{
			Rank: 3, Identity: "three",
			Address: "10.0.0.3:7000",
		},
	)}
	c := Config{Group: "shop", Security: Security{TLS: new(tls.Config)}}
	for _, test := range []struct {
		rank    protocol.Rank
		address string
		name    string
		want    bool
	}{
		{1, "", "10.0.0.1", true},
		{1, "", "one", true},
		{1, "", "10.0.0.3", false},
		{1, "10.0.0.3:7000", "10.0.0.3", false}, // dialed at an old address
		{3, "", "three", true},
		{2, "", "10.0.0.9", true}, // a hole: its process is verified when it is known
		{4 + maxNewRanks, "", "10.0.0.9", false},
		{protocol.NoRank, "10.0.0.3:7000", "10.0.0.3", true},
		{protocol.NoRank, "10.0.0.3:7000", "10.0.0.1", false},
	} {
		err := verifyClaim(&c, v, tcp.Claim{
			Rank: test.rank, Address: test.address,
			Certificates: []*x509.Certificate{certificate(t, test.name)},
		})
		if (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
	c.Security.TLS = nil
	if err := verifyClaim(&c, v, tcp.Claim{Rank: 4 + maxNewRanks}); err == nil {
		t.Error("a rank far beyond the view")
	}
	if err := verifyClaim(&c, v, tcp.Claim{Rank: 1}); err != nil {
		t.Error(err)
	}
}

// Only a certificate that names an ID takes it to another host.
func TestCertificateOfHostKeepsIDOnHost(t *testing.T) {
	c := Config{Group: "shop", Security: Security{TLS: new(tls.Config)}}
	m := membership.Member{Identity: "web-0", Address: "10.0.0.2:7000"}
	for _, test := range []struct {
		name, former string
		want         bool
	}{
		{"10.0.0.2", "", true},
		{"10.0.0.2", "10.0.0.2", true},
		{"10.0.0.2", "10.0.0.1", false},
		{"web-0", "10.0.0.1", true},
		{"spiffe://example.org/pleach/shop/web-0", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.1", false},
	} {
		err := verifyCandidate(&c, m, test.former,
			tcp.Claim{Address: m.Address, Certificates: []*x509.Certificate{certificate(t, test.name)}})
		if (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
