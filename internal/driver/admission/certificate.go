package admission

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
//   - By URI: spiffe://TRUST-DOMAIN/pleach/GROUP/ID names one member of one group,
//     spiffe://TRUST-DOMAIN/pleach-operator/GROUP the operators of a group, and
//     spiffe://TRUST-DOMAIN/pleach-observer/GROUP processes that only observe it. A
//     certificate with such a URI is valid for nothing else.
//   - Without such a URI, by name: a DNS name that equals a member's ID is valid for that
//     member, and the name or IP address of a host for the members on that host. A group
//     whose members have URIs accepts no such certificate (Authorizer.URIs): the same authority
//     may have issued it to a web server or a workload of a service mesh.

// Covers reports whether a certificate is valid for a member. An empty ID stands for any
// member at the address.
func (d *Authorizer) Covers(leaf *x509.Certificate, id, address string) bool {
	uris := urisOf(leaf)
	if len(uris) == 0 {
		return !d.URIs && (id != "" && slices.Contains(leaf.DNSNames, id) ||
			leaf.VerifyHostname(cmp.Or(d.ServerName, HostOf(address))) == nil)
	}
	return slices.ContainsFunc(uris, func(u uri) bool {
		return u.kind == memberURI && u.group == d.Group && (id == "" || u.id == id)
	})
}

// NamesID reports whether a certificate names an ID, and not only its host.
func (d *Authorizer) NamesID(leaf *x509.Certificate, id string) bool {
	return slices.Contains(urisOf(leaf), uri{group: d.Group, id: id}) || !d.URIs && slices.Contains(leaf.DNSNames, id)
}

// HasMemberURI reports whether a certificate names a member of any group by URI.
func HasMemberURI(leaf *x509.Certificate) bool {
	return slices.ContainsFunc(urisOf(leaf), func(u uri) bool { return u.kind == memberURI })
}

// uri is one parsed Pleach URI of a certificate.
type uri struct {
	group, id string // id is empty unless kind is memberURI
	kind      uriKind
}

// uriKind is the role that a URI grants.
type uriKind uint8

const (
	memberURI uriKind = iota
	operatorURI
	observerURI
)

// observes reports whether a URI grants the right to observe a group. A group whose name
// ends with a slash is the backbone of a fleet: its members and observers also observe the
// groups of the fleet's zones, whose names begin with it, to find their gateways.
func (u *uri) observes(group string) bool {
	return u.group == group || u.kind != operatorURI && strings.HasSuffix(u.group, "/") &&
		strings.HasPrefix(group, u.group)
}

// urisOf returns the Pleach URIs of a certificate.
func urisOf(leaf *x509.Certificate) (all []uri) {
	for _, u := range leaf.URIs {
		if named, ok := parseURI(u); ok {
			all = append(all, named)
		}
	}
	return all
}

// parseURI parses the URI of a member, of operators or of observers. Group and ID may be
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
		return uri{group: group, kind: operatorURI}, true
	case len(parts) == 3 && parts[1] == "pleach-observer":
		return uri{group: group, kind: observerURI}, true
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
