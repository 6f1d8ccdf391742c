package admission

import (
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"testing"

	"github.com/pleach-go/pleach/internal/base/access"
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
		{[]string{web0}, "", "10.0.0.1:7000", true},                                                     // any member
		{[]string{"spiffe://example.org/pleach-operator/shop", "10.0.0.1"}, "", "10.0.0.1:7000", false}, // no member
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
		d := Authorizer{Group: "shop", TLS: true}
		if d.Covers(certificate(t, test.names...), test.id, test.address) != test.want {
			t.Errorf("%v for %q at %s: %v", test.names, test.id, test.address, !test.want)
		}
	}
	shared := Authorizer{TLS: true, ServerName: "group.local"}
	if !shared.Covers(certificate(t, "group.local"), "web-0", "10.0.0.1:7000") {
		t.Error("the name that all share is for nobody")
	}
}

// The table of rights: what each kind of certificate gives in the group "shop", whose member
// web-0 is on 10.0.0.1.
func TestRights(t *testing.T) {
	const observe, enter, decide, operate = 1, 2, 4, 8
	d := Authorizer{
		Group: "shop", TLS: true,
		Members: func(yield func(id, address string) bool) { yield("web-0", "10.0.0.1:7000") },
	}
	for name, want := range map[string]int{
		"spiffe://x/pleach/shop/web-0":      observe | enter | decide | operate,
		"spiffe://x/pleach/shop/web-9":      observe | enter,
		"spiffe://x/pleach/bank/web-0":      0,
		"spiffe://x/pleach-operator/shop":   observe | operate,
		"spiffe://x/pleach-operator/bank":   0,
		"spiffe://x/pleach-operator/shop/x": observe | enter, // not ours: a certificate without names
		"spiffe://x/pleach-observer/shop":   observe,
		"spiffe://x/pleach-observer/bank":   0,
		"10.0.0.1":                          observe | enter | decide | operate,
		"10.0.0.2":                          observe | enter,
		"web-0":                             observe | enter | decide | operate,
	} {
		got := 0
		for i, right := range []access.Right{access.Observe, access.Enter, access.Decide, access.Operate} {
			if d.Check([]*x509.Certificate{certificate(t, name)}, right, access.Claim{}) == nil {
				got |= 1 << i
			}
		}
		if got != want {
			t.Errorf("%s: rights %04b, want %04b", name, got, want)
		}
	}
	if d.Check(nil, access.Observe, access.Claim{}) == nil {
		t.Error("a caller without a certificate observes")
	}
	if err := d.Check([]*x509.Certificate{certificate(t, "10.0.0.2")}, access.Enter,
		access.Claim{ID: "web-1", Address: "10.0.0.3:7000"}); err == nil {
		t.Error("a host enters at the address of another one")
	}
	if err := (&Authorizer{Group: "shop"}).Check(nil, access.Operate, access.Claim{}); err != nil {
		t.Errorf("without TLS: %v", err)
	}
}

// A group whose members have URIs accepts no certificate of the same authority without one,
// whatever names it has: that of a service mesh's workload, of a web server on a member's host,
// or of a host that is called like a member.
func TestURIGroupRefusesOtherCertificates(t *testing.T) {
	d := Authorizer{
		Group: "shop", TLS: true, URIs: true,
		Members: func(yield func(id, address string) bool) { yield("web-0", "10.0.0.1:7000") },
	}
	for _, names := range [][]string{
		nil,
		{"spiffe://x/ns/shop/sa/cart"},
		{"10.0.0.1"},
		{"10.0.0.2"},
		{"web-0"},
		{"spiffe://x/ns/shop/sa/cart", "web-0", "10.0.0.1"},
	} {
		leaf := certificate(t, names...)
		for _, right := range []access.Right{access.Observe, access.Enter, access.Decide, access.Operate} {
			if err := d.Check([]*x509.Certificate{leaf}, right, access.Claim{}); !errors.Is(err, ErrRight) {
				t.Errorf("%v may %s: %v", names, right, err)
			}
		}
		if err := d.Check([]*x509.Certificate{leaf}, access.Enter,
			access.Claim{ID: "web-0", Address: "10.0.0.1:7000"}); !errors.Is(err, ErrRight) {
			t.Errorf("%v enters as web-0: %v", names, err)
		}
		if d.NamesID(leaf, "web-0") {
			t.Errorf("%v names web-0", names)
		}
	}
}

// Members and observers of a fleet's backbone observe its zones, and nothing more.
func TestBackboneObservesZones(t *testing.T) {
	for name, want := range map[string]bool{
		"spiffe://x/pleach/shop%2F/a%2Fa0":       true,
		"spiffe://x/pleach-observer/shop%2F":     true,
		"spiffe://x/pleach-operator/shop%2F":     false, // of the backbone only
		"spiffe://x/pleach/shop/a0":              false,
		"spiffe://x/pleach/sho%2F/a0":            false,
		"spiffe://x/pleach-observer/shop%2Fb":    true,
		"spiffe://x/pleach-observer/shop%2Fb%2F": false,
	} {
		d := Authorizer{Group: "shop/b", TLS: true, URIs: true}
		chain := []*x509.Certificate{certificate(t, name)}
		if err := d.Check(chain, access.Observe, access.Claim{}); (err == nil) != want {
			t.Errorf("%s observes: %v, want %v", name, err, want)
		}
		if d.Check(chain, access.Enter, access.Claim{}) == nil || d.Check(chain, access.Operate, access.Claim{}) == nil {
			t.Errorf("%s does more than observe", name)
		}
	}
}

// FuzzURI parses what a certificate may hold.
func FuzzURI(f *testing.F) {
	f.Add("spiffe://example.org/pleach/shop/web-0")
	f.Add("spiffe://example.org/pleach//a%2Fb")
	f.Add("spiffe:///pleach/shop/web-0")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		m, ok := parseURI(u)
		if !ok {
			return
		}
		if m.kind != memberURI {
			m.kind, m.id = memberURI, "x"
		}
		again := &url.URL{
			Scheme: "spiffe", Host: "x", Path: "/pleach/" + m.group + "/" + m.id,
			RawPath: "/pleach/" + url.PathEscape(m.group) + "/" + url.PathEscape(m.id),
		}
		if got, ok := parseURI(again); !ok || got != m {
			t.Errorf("%q is %+v, and then %+v", text, m, got)
		}
	})
}
