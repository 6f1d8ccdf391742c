package pleach

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"testing"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
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

func TestCertificateCovers(t *testing.T) {
	const web0 = "spiffe://example.org/pleach/shop/web-0"
	for _, test := range []struct {
		names       []string
		id, address string
		want        bool
	}{
		{[]string{web0}, "web-0", "10.0.0.1:7000", true},
		{[]string{web0}, "web-1", "10.0.0.1:7000", false},
		{[]string{web0}, "", "10.0.0.1:7000", true}, // any member
		{[]string{"spiffe://other/pleach/shop/web-0"}, "web-0", "10.0.0.1:7000", true},
		{[]string{"spiffe://example.org/pleach/bank/web-0"}, "web-0", "10.0.0.1:7000", false},
		{[]string{"spiffe://example.org/pleach/shop/10.0.0.1:7000"}, "10.0.0.1:7000", "10.0.0.1:7000", true},
		{[]string{"spiffe://example.org/pleach/shop/a%2Fb"}, "a/b", "10.0.0.1:7000", true},
		{[]string{"spiffe://example.org/pleach/shop/web-0/x"}, "web-0", "10.0.0.1:7000", false},
		{[]string{"https://example.org/pleach/shop/web-0"}, "web-0", "10.0.0.1:7000", false},
		// A URI decides, whatever else the certificate names.
		{[]string{web0, "10.0.0.1", "web-1"}, "web-1", "10.0.0.1:7000", false},
		// A URI of another scheme does not.
		{[]string{"spiffe://example.org/ns/shop/sa/web", "10.0.0.1"}, "web-1", "10.0.0.1:7000", true},
		{[]string{"web-0"}, "web-0", "10.0.0.1:7000", true},
		{[]string{"web-0"}, "web-1", "10.0.0.1:7000", false},
		{[]string{"10.0.0.1"}, "web-0", "10.0.0.1:7000", true},
		{[]string{"10.0.0.1"}, "web-0", "10.0.0.2:7000", false},
		{[]string{"10.0.0.1"}, "10.0.0.2:7000", "10.0.0.2:7000", false},
		{[]string{"*.shop.local"}, "web-0", "web-0.shop.local:7000", true},
		{nil, "web-0", "10.0.0.1:7000", false},
	} {
		c := Config{Group: "shop", TLS: new(tls.Config)}
		err := c.covers(certificate(t, test.names...), test.id, test.address)
		if (err == nil) != test.want || err != nil && !errors.As(err, new(*IdentityError)) {
			t.Errorf("%v for %q at %s: %v", test.names, test.id, test.address, err)
		}
	}
	shared := Config{TLS: &tls.Config{ServerName: "group.local"}}
	if err := shared.covers(certificate(t, "group.local"), "web-0", "10.0.0.1:7000"); err != nil {
		t.Error(err)
	}
}

func TestVerifyClaim(t *testing.T) {
	v := &membership.View{Number: 7, Slots: 4, Members: membership.MembersOf(
		membership.Member{Rank: 1, Identity: "one", Address: "10.0.0.1:7000"}, membership.Member{Rank: 3, Identity: "three", Address: "10.0.0.3:7000"},
	)}
	c := Config{Group: "shop", TLS: new(tls.Config)}
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
		err := c.verifyClaim(v, tcp.Claim{Rank: test.rank, Address: test.address, Certificates: []*x509.Certificate{certificate(t, test.name)}})
		if (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
	c.TLS = nil
	if err := c.verifyClaim(v, tcp.Claim{Rank: 4 + maxNewRanks}); err == nil {
		t.Error("a rank far beyond the view")
	}
	if err := c.verifyClaim(v, tcp.Claim{Rank: 1}); err != nil {
		t.Error(err)
	}
}

// Only a certificate that names an ID takes it to another host.
func TestCertificateOfHostKeepsIDOnHost(t *testing.T) {
	c := Config{Group: "shop", TLS: new(tls.Config)}
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
		err := c.verifyCandidate(m, test.former, tcp.Claim{Address: m.Address, Certificates: []*x509.Certificate{certificate(t, test.name)}})
		if (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// FuzzMemberURI parses what a certificate may hold.
func FuzzMemberURI(f *testing.F) {
	f.Add("spiffe://example.org/pleach/shop/web-0")
	f.Add("spiffe://example.org/pleach//a%2Fb")
	f.Add("spiffe:///pleach/shop/web-0")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		m, ok := parseMemberURI(u)
		if !ok {
			return
		}
		again := &url.URL{Scheme: "spiffe", Host: "x", Path: "/pleach/" + m.group + "/" + m.id, RawPath: "/pleach/" + url.PathEscape(m.group) + "/" + url.PathEscape(m.id)}
		if got, ok := parseMemberURI(again); !ok || got != m {
			t.Errorf("%q is %+v, and then %+v", text, m, got)
		}
	})
}
