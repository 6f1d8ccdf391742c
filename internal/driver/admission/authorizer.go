package admission

import (
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pleach-go/pleach/internal/base/access"
)

// ErrRight means that a process asks for something that it has no right to.
var ErrRight = errors.New("the certificate does not give this right in the group")

// Authorizer decides which rights the callers of one process have. With a secret, and without
// protection, every caller that has passed the handshake has every right. With TLS, the
// caller's certificate grants rights.
type Authorizer struct {
	Group string
	// TLS says that callers have certificates. ServerName, if not empty, is the name that
	// all of them have.
	TLS        bool
	ServerName string
	// URIs says that this process's own certificate names a member by URI. Certificates
	// without a Pleach URI then grant nothing.
	URIs bool
	// Deny has what is denied although its certificate is valid. If nil, nothing is.
	Deny *Deny
	// Members yields the IDs and addresses of the members that are known. If nil, none is.
	Members iter.Seq2[string, string]
}

// Check returns an error if the process with these certificates does not have the right that
// it asks for. Only Enter has a claim.
func (d *Authorizer) Check(chain []*x509.Certificate, right access.Right, claim access.Claim) error {
	if !d.TLS {
		return nil
	}
	if len(chain) == 0 {
		return fmt.Errorf("%w: %s needs a certificate", ErrRight, right)
	}
	leaf := chain[0]
	switch {
	case right == access.Enter && claim != (access.Claim{}):
		if !d.Covers(leaf, claim.ID, claim.Address) {
			return fmt.Errorf("%w: one for %v is not for %q at %s%s", ErrRight, NamesOf(leaf), claim.ID, claim.Address,
				d.uriHint(leaf))
		}
	case !d.allows(leaf, right):
		return fmt.Errorf("%w: one for %v may not %s in %q%s", ErrRight, NamesOf(leaf), right, d.Group, d.uriHint(leaf))
	}
	return d.Deny.Check(leaf, claim.ID)
}

// uriHint explains the refusal of a certificate without a Pleach URI.
func (d *Authorizer) uriHint(leaf *x509.Certificate) string {
	if d.URIs && len(urisOf(leaf)) == 0 {
		return ": members of this group have certificates with a URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID, and it has none"
	}
	return ""
}

// allows reports whether a certificate grants a right. Without URIs a certificate names no
// group: in a group that accepts such certificates, each one of the authority may observe and
// enter, and those of the members' own hosts operate.
func (d *Authorizer) allows(leaf *x509.Certificate, right access.Right) bool {
	uris := urisOf(leaf)
	if len(uris) == 0 && d.URIs {
		return false
	}
	member := len(uris) == 0 ||
		slices.ContainsFunc(uris, func(u uri) bool { return u.kind == memberURI && u.group == d.Group })
	switch right {
	case access.Observe:
		return member || slices.ContainsFunc(uris, func(u uri) bool { return u.observes(d.Group) })
	case access.Enter:
		return member
	case access.Decide:
		return member && d.isMember(leaf)
	case access.Operate:
		return slices.Contains(uris, uri{group: d.Group, kind: operatorURI}) || member && d.isMember(leaf)
	}
	return false
}

// isMember reports whether a certificate is for a member of the present view.
func (d *Authorizer) isMember(leaf *x509.Certificate) bool {
	if d.Members == nil {
		return false
	}
	for id, address := range d.Members {
		if d.Covers(leaf, id, address) {
			return true
		}
	}
	return false
}
