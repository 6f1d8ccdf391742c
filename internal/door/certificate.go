package door

import (
	"cmp"
	"crypto/x509"
	"net"
	"net/url"
	"slices"
	"strings"
)

// A certificate names members in one of two ways:
//
//   - A URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID names one member of one group, and
//     spiffe://TRUST-DOMAIN/pleach-operator/GROUP the operators of a group. A certificate
//     with such URIs is for these only.
//   - Without such a URI, a DNS name that equals a member's ID is for that member, and
//     the name or IP address of a host is for the members whose addresses have that
//     host.

// Covers reports whether a certificate is for a member. An empty ID stands for any member
// at the address.
func (d *Door) Covers(leaf *x509.Certificate, id, address string) bool {
	uris := urisOf(leaf)
	if len(uris) == 0 {
		return id != "" && slices.Contains(leaf.DNSNames, id) || leaf.VerifyHostname(cmp.Or(d.ServerName, HostOf(address))) == nil
	}
	return slices.ContainsFunc(uris, func(u uri) bool { return !u.operator && u.group == d.Group && (id == "" || u.id == id) })
}

// NamesID reports whether a certificate names an ID, and not only its host.
func (d *Door) NamesID(leaf *x509.Certificate, id string) bool {
	return slices.Contains(urisOf(leaf), uri{group: d.Group, id: id}) || slices.Contains(leaf.DNSNames, id)
}

// uri is what a URI of a certificate says.
type uri struct {
	group, id string
	operator  bool
}

// urisOf returns the members and operators that the URIs of a certificate name.
func urisOf(leaf *x509.Certificate) (all []uri) {
	for _, u := range leaf.URIs {
		if named, ok := parseURI(u); ok {
			all = append(all, named)
		}
	}
	return all
}

// parseURI parses the URI of a member or of operators. Group and ID may be
// percent-encoded.
func parseURI(u *url.URL) (uri, bool) {
	parts := strings.Split(u.EscapedPath(), "/")
	if u.Scheme != "spiffe" || u.Host == "" || len(parts) < 3 || parts[0] != "" {
		return uri{}, false
	}
	group, err := url.PathUnescape(parts[2])
	switch {
	case err != nil:
		return uri{}, false
	case len(parts) == 3 && parts[1] == "pleach-operator":
		return uri{group: group, operator: true}, true
	case len(parts) != 4 || parts[1] != "pleach":
		return uri{}, false
	}
	id, err := url.PathUnescape(parts[3])
	return uri{group: group, id: id}, err == nil && id != ""
}

// NamesOf returns what a certificate is valid for.
func NamesOf(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// HostOf is the host of an address, or the address if it has no port.
func HostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
