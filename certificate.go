package pleach

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/base/access"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/detection"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Every connection and every request is authorized before anything else is done for it: see
// package admission. With TLS, a process may only be the member that its certificate names.
// The process itself checks that first: otherwise it could dial the others, and would
// be a member that none of them can dial.

// CertificateError is returned when this process cannot be a member because no
// certificate in Config.Security.TLS is for it. The cause is an [*IdentityError], or an error of
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
	return fmt.Sprintf("no certificate in Config.Security.TLS is for this process, ID %q on host %s, only for %v: "+
		"it needs the URI spiffe://TRUST-DOMAIN/pleach/GROUP/ID, or its ID or host as a name: %v", e.ID, e.Host,
		e.ValidFor, e.Err)
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
func checkCertificate(c *Config, id, address string) error {
	if c.Security.TLS == nil {
		return nil
	}
	config, err := admission.Present(c.Security.TLS)
	if err != nil {
		return err
	}
	if config.GetCertificate != nil {
		return nil
	}
	e := &CertificateError{
		ID: id, Host: cmp.Or(c.Security.TLS.ServerName, admission.HostOf(address)),
		Err: errors.New("there is none"),
	}
	for _, chain := range config.Certificates {
		leaf, err := admission.Leaf(&chain)
		if err == nil {
			if err = covers(c, leaf, id, address); err == nil {
				return nil
			}
			e.ValidFor = append(e.ValidFor, admission.NamesOf(leaf)...)
		}
		e.Err = err
	}
	return e
}

// covers returns an error if a certificate is not for a member, or is denied.
func covers(c *Config, leaf *x509.Certificate, id, address string) error {
	if !clientOf(c).Authorizer(nil).Covers(leaf, id, address) {
		return &IdentityError{ID: id, Address: address, ValidFor: admission.NamesOf(leaf)}
	}
	return c.Security.followed.Deny.Check(leaf, id)
}

// verifyClaim returns an error if the other side of a connection must not be the
// member that it says it is.
func verifyClaim(c *Config, v *membership.View, claim tcp.Claim) error {
	m, known := v.Member(claim.Rank)
	switch {
	case claim.Rank != protocol.NoRank && claim.Rank >= v.Slots+maxNewRanks:
		return fmt.Errorf("rank %d is far beyond the %d of view %d", claim.Rank, v.Slots, v.Number)
	case c.Security.TLS == nil:
		return nil
	case known:
		return covers(c, claim.Certificates[0], m.Identity, m.Address)
	}
	return verifyUnknown(c, claim) // if its rank is not known yet, installView verifies it again
}

// verifyUnknown returns an error if the other side of a connection, of which it is not
// known which member it is, must not be any. A client may be an operator.
func verifyUnknown(c *Config, claim tcp.Claim) error {
	switch {
	case claim.Address != "": // it was dialed
		return covers(c, claim.Certificates[0], "", claim.Address)
	case claim.Rank == protocol.NoRank:
		return clientOf(c).Authorizer(nil).Check(claim.Certificates, access.Observe, access.Claim{})
	}
	return clientOf(c).Authorizer(nil).Check(claim.Certificates, access.Enter, access.Claim{})
}

// maxNewRanks is how many ranks a view may have more than the one that this member
// has.
const maxNewRanks = 4096

// verifyCandidate returns an error if a candidate's certificate is not for its ID. A
// certificate of a host is enough for the IDs that are new or were on that host: only
// one that names an ID may take it to another host.
func verifyCandidate(c *Config, m membership.Member, former string, claim tcp.Claim) error {
	leaf := claim.Certificates[0]
	if err := covers(c, leaf, m.Identity, m.Address); err != nil {
		return err
	}
	if former != "" && former != admission.HostOf(m.Address) && c.Security.TLS.ServerName == "" &&
		!clientOf(c).Authorizer(nil).NamesID(leaf, m.Identity) {
		return fmt.Errorf("%q was on host %s: %w", m.Identity, former, &IdentityError{
			ID: m.Identity, Address: m.Address,
			ValidFor: admission.NamesOf(leaf),
		})
	}
	return nil
}

// TLSFiles returns a config for [Security].TLS with this process's certificate and key
// and the certificates of the group's authorities, all from PEM files. Files that
// change are read again: connections that are open continue, and new ones use the new
// certificates. If the new files cannot be used, such as a key without its new
// certificate, the last good ones are used until they can.
//
// To replace an authority, first give all members a file with the old and the new one,
// then replace the certificates, and then remove the old authority.
func TLSFiles(cert, key, ca string) (*tls.Config, error) {
	c, err := admission.Files(cert, key, ca)
	if err != nil {
		return nil, fmt.Errorf("pleach: TLSFiles: %w", err)
	}
	return c, nil
}

// A certificate that expires keeps its process out at the next connection. So the log warns
// expiryNotice before, and the status tells when.
const (
	expiryNotice   = 7 * 24 * time.Hour
	expiryInterval = time.Hour
)

// credentials follows the certificate, the secrets and the deny list of this member.
type credentials struct {
	*core
	detection *detection.Detection
	revoked   revoked // the members that have shown a certificate that is denied
	setPeers  func(v *membership.View, before membership.Members)
}

// watchExpiry warns of a certificate that expires, each time that it is looked at.
func (c *credentials) watchExpiry() {
	for c.life.Err() == nil {
		if at := admission.Expiry(c.config.Security.TLS); !at.IsZero() && time.Until(at) < expiryNotice {
			c.log.Warn("this member's certificate expires: replace its file, or restart the process with another one", "at", at,
				"in", time.Until(at).Round(time.Minute))
		}
		select {
		case <-c.life.Done():
		case <-time.After(expiryInterval):
		}
	}
}

// ErrRevoked is wrapped by the error of a connection or request of a process whose certificate, or
// the member that it is for, is on the deny list: see Config.Security.DenyFile.
var ErrRevoked = admission.ErrRevoked

// follow reads the files of a config that are read again when they change. They must be good
// now.
func follow(c *Config) (err error) {
	f := &c.Security.followed
	if c.Security.SecretFile != "" && f.Secrets == nil {
		f.Secrets, err = admission.SecretFile(c.Security.SecretFile)
		if err != nil {
			return &ConfigError{Field: "Security.SecretFile", Reason: "cannot be used: " + err.Error(), Err: err}
		}
	}
	if c.Security.DenyFile != "" && f.Deny == nil {
		f.Deny, err = admission.DenyFile(c.Security.DenyFile)
		if err != nil {
			return &ConfigError{Field: "Security.DenyFile", Reason: "cannot be used: " + err.Error(), Err: err}
		}
	}
	return nil
}

// secretsOf returns the group's secrets now, the one that this process proves first.
func secretsOf(c *Config) [][]byte {
	switch {
	case c.Security.followed.Secrets != nil:
		return c.Security.followed.Secrets.Current()
	case len(c.Security.Secret) > 0:
		return [][]byte{c.Security.Secret}
	}
	return nil
}

// secretOf returns the secret that this process proves, or nil.
func secretOf(c *Config) []byte {
	if all := secretsOf(c); len(all) > 0 {
		return all[0]
	}
	return nil
}

// revoked passes on which members have shown a certificate that is denied, from the
// connections to the goroutine that evicts them.
type revoked chan protocol.Rank

// maxRevoked is how many members may wait to be evicted.
const maxRevoked = 64

// note takes the refusal of a process at the address of a member. A process that has dialed
// proves nothing: a certificate may be denied because it was stolen from the member.
func (r revoked) note(claim tcp.Claim, err error) {
	if claim.Address == "" || claim.Rank == protocol.NoRank || !errors.Is(err, ErrRevoked) {
		return
	}
	select {
	case r <- claim.Rank:
	default: // it is dialed again
	}
}

// followFiles acts on changes of secrets and of the deny list until the membership ends.
func (c *credentials) followFiles() {
	deny, view := c.config.Security.followed.Deny, uint64(0)
	denied := func(m *membership.Member) bool { return deny.Names(m.Identity) }
	w := admission.Watcher{
		Followed: c.config.Security.followed, Logger: c.log, OnSecrets: c.detection.SetSecrets,
		OnDeny: func() { c.verifyAgain(); c.evictRevoked(denied) },
		OnLook: func() {
			if v := c.view.Load().Number; deny != nil && v != view {
				c.evictRevoked(denied) // a member with an older list may have let one in
				view = v
			}
			for len(c.revoked) > 0 {
				rank := <-c.revoked
				c.evictRevoked(func(m *membership.Member) bool { return m.Rank == rank })
			}
		},
	}
	w.Run(c.life)
}

// verifyAgain has the transport verify its connections, and end those whose certificates are
// denied.
func (c *credentials) verifyAgain() {
	_ = c.node.Do(func(protocol.Time) {
		v := c.machine.View()
		c.setPeers(&v, membership.Members{})
	})
}

// evictRevoked evicts other members.
func (c *credentials) evictRevoked(denied func(*membership.Member) bool) {
	_ = c.node.Do(func(now protocol.Time) {
		v := c.machine.View()
		for _, m := range v.Members.All() {
			if m.Rank == c.self.Rank || !denied(m) {
				continue
			}
			if err := c.machine.Evict(now, m.Rank, m.Incarnation, membership.Revoked); err == nil {
				c.log.Warn("member is revoked", "peer", m.Rank, "id", m.Identity, "view", v.Number)
			}
		}
	})
}
