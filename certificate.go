package pleach

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// With TLS, a process may only be the member that its certificate names. A certificate
// names members in one of two ways:
//
//   - A URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID names one member of one group. A
//     certificate with such URIs is for these members only.
//   - Without such a URI, a DNS name that equals a member's ID is for that member, and
//     the name or IP address of a host is for the members whose addresses have that
//     host.
//
// The process itself checks that first: otherwise it could dial the others, and would
// be a member that none of them can dial.

// CertificateError is returned when this process cannot be a member because no
// certificate in Config.TLS is for it. The cause is an [*IdentityError], or an error of
// package x509.
type CertificateError struct {
	// ID and Host are what the other members compare the certificate with: Host is
	// that of this process's address, or TLS.ServerName if that is set.
	ID, Host string
	// ValidFor are the URIs, DNS names and IP addresses that the certificates name.
	ValidFor []string
	Err      error
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("no certificate in Config.TLS is for this process, ID %q on host %s, only for %v: "+
		"it needs the URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID, or its ID or host as a name: %v", e.ID, e.Host, e.ValidFor, e.Err)
}

// Unwrap returns the cause.
func (e *CertificateError) Unwrap() error { return e.Err }

// IdentityError means that a process claims to be a member that its certificate is not
// for.
type IdentityError struct {
	// ID and Address are those of the member.
	ID, Address string
	// ValidFor are the URIs, DNS names and IP addresses that the certificate names.
	ValidFor []string
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("a certificate for %v is not for member %q at %s", e.ValidFor, e.ID, e.Address)
}

// checkCertificate returns an error if no certificate of this process is for the
// member that it wants to be. It cannot check what GetCertificate would return.
func (c *Config) checkCertificate(id, address string) error {
	if c.TLS == nil {
		return nil
	}
	config := c.TLS
	if config.GetConfigForClient != nil {
		current, err := config.GetConfigForClient(&tls.ClientHelloInfo{})
		if err != nil {
			return err
		}
		config = cmp.Or(current, config)
	}
	if config.GetCertificate != nil {
		return nil
	}
	e := &CertificateError{ID: id, Host: cmp.Or(c.TLS.ServerName, hostOf(address)), Err: errors.New("there is none")}
	for _, chain := range config.Certificates {
		leaf, err := leafOf(&chain)
		if err == nil {
			if err = c.covers(leaf, id, address); err == nil {
				return nil
			}
			e.ValidFor = append(e.ValidFor, namesOf(leaf)...)
		}
		e.Err = err
	}
	return e
}

// covers returns an error if a certificate is not for a member. An empty ID stands for
// any member at the address.
func (c *Config) covers(leaf *x509.Certificate, id, address string) error {
	uris, named := memberURIs(leaf), false
	for _, u := range uris {
		named = named || u.group == c.Group && (id == "" || u.id == id)
	}
	if len(uris) == 0 {
		named = id != "" && slices.Contains(leaf.DNSNames, id) || c.coversHost(leaf, address)
	}
	if !named {
		return &IdentityError{ID: id, Address: address, ValidFor: namesOf(leaf)}
	}
	return nil
}

// coversHost reports whether a certificate is for the host of an address.
func (c *Config) coversHost(leaf *x509.Certificate, address string) bool {
	return leaf.VerifyHostname(cmp.Or(c.TLS.ServerName, hostOf(address))) == nil
}

// namesID reports whether a certificate names an ID, and not only its host.
func (c *Config) namesID(leaf *x509.Certificate, id string) bool {
	return slices.Contains(memberURIs(leaf), memberURI{c.Group, id}) || slices.Contains(leaf.DNSNames, id)
}

// memberURI is what a URI of a certificate says.
type memberURI struct{ group, id string }

// memberURIs are the members that the URIs of a certificate name.
func memberURIs(leaf *x509.Certificate) (members []memberURI) {
	for _, u := range leaf.URIs {
		if m, ok := parseMemberURI(u); ok {
			members = append(members, m)
		}
	}
	return members
}

// parseMemberURI parses spiffe://TRUST-DOMAIN/pleach/GROUP/ID. Group and ID may be
// percent-encoded.
func parseMemberURI(u *url.URL) (memberURI, bool) {
	parts := strings.Split(u.EscapedPath(), "/")
	if u.Scheme != "spiffe" || u.Host == "" || len(parts) != 4 || parts[0] != "" || parts[1] != "pleach" {
		return memberURI{}, false
	}
	group, groupErr := url.PathUnescape(parts[2])
	id, idErr := url.PathUnescape(parts[3])
	return memberURI{group, id}, groupErr == nil && idErr == nil && id != ""
}

// verifyClaim returns an error if the other side of a connection must not be the
// member that it says it is.
func (c *Config) verifyClaim(v *membership.View, claim tcp.Claim) error {
	m, known := v.Member(claim.Rank)
	switch {
	case claim.Rank != protocol.NoRank && claim.Rank >= v.Slots+maxNewRanks:
		return fmt.Errorf("rank %d is far beyond the %d of view %d", claim.Rank, v.Slots, v.Number)
	case c.TLS == nil:
		return nil
	case known:
		return c.covers(claim.Certificates[0], m.Identity, m.Address)
	case claim.Address != "":
		return c.covers(claim.Certificates[0], "", claim.Address)
	}
	return nil // its rank is not known yet; installView verifies it again
}

// maxNewRanks is how many ranks a view may have more than the one that this member
// has.
const maxNewRanks = 4096

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
func namesOf(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.DNSNames...)
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
