package door

import (
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Right is what a process may do in a group.
type Right uint8

// The rights, the least first.
const (
	// Observe is to ask for the view, and for the progress of calls.
	Observe Right = iota + 1
	// Enter is to be a candidate under an ID and an address: to found, to join, and to take a
	// place again.
	Enter
	// Decide is to be believed in what the group has decided.
	Decide
	// Operate is to force a view, to raise the version and to evict a member.
	Operate
)

// String returns the name of the right.
func (r Right) String() string {
	names := [...]string{Observe: "observe", Enter: "enter", Decide: "decide", Operate: "operate"}
	if int(r) < len(names) && r > 0 {
		return names[r]
	}
	return fmt.Sprintf("right %d", uint8(r))
}

// ErrRight means that a process asks for something that it has no right to.
var ErrRight = errors.New("the certificate does not give this right in the group")

// Door is what one process knows of those that come to it. With a secret, and without
// protection, the handshake has decided already: a process that has come so far has every
// right. With TLS, its certificate says.
type Door struct {
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

// Claim is what a caller wants to be, if it wants to be a member.
type Claim struct{ ID, Address string }

// Check returns an error if the process with these certificates has not the right that it
// asks for. Only Enter has a claim.
func (d *Door) Check(chain []*x509.Certificate, right Right, claim Claim) error {
	if !d.TLS {
		return nil
	}
	if len(chain) == 0 {
		return fmt.Errorf("%w: %s needs a certificate", ErrRight, right)
	}
	leaf := chain[0]
	switch {
	case right == Enter && claim != (Claim{}):
		if !d.Covers(leaf, claim.ID, claim.Address) {
			return fmt.Errorf("%w: one for %v is not for %q at %s%s", ErrRight, NamesOf(leaf), claim.ID, claim.Address, d.uriHint(leaf))
		}
	case !d.allows(leaf, right):
		return fmt.Errorf("%w: one for %v may not %s in %q%s", ErrRight, NamesOf(leaf), right, d.Group, d.uriHint(leaf))
	}
	return d.Deny.Check(leaf, claim.ID)
}

// uriHint explains the refusal of a certificate without a Pleach URI.
func (d *Door) uriHint(leaf *x509.Certificate) string {
	if d.URIs && len(urisOf(leaf)) == 0 {
		return ": members of this group have certificates with a URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID, and it has none"
	}
	return ""
}

// allows reports whether a certificate grants a right. Without URIs a certificate names no
// group: in a group that accepts such certificates, each one of the authority may observe and
// enter, and those of the members' own hosts operate.
func (d *Door) allows(leaf *x509.Certificate, right Right) bool {
	uris := urisOf(leaf)
	if len(uris) == 0 && d.URIs {
		return false
	}
	member := len(uris) == 0 || slices.ContainsFunc(uris, func(u uri) bool { return u.kind == memberURI && u.group == d.Group })
	switch right {
	case Observe:
		return member || slices.ContainsFunc(uris, func(u uri) bool { return u.observes(d.Group) })
	case Enter:
		return member
	case Decide:
		return member && d.isMember(leaf)
	case Operate:
		return slices.Contains(uris, uri{group: d.Group, kind: operatorURI}) || member && d.isMember(leaf)
	}
	return false
}

// isMember reports whether a certificate is for a member of the present view.
func (d *Door) isMember(leaf *x509.Certificate) bool {
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
