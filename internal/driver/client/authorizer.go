package client

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/base/access"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/transport"
)

// Authorizer returns the authorizer of this process. It knows the members of a view, which may be
// nil, and those that decisions add.
func (c *Client) Authorizer(v *membership.View, later ...membership.Decisions) *admission.Authorizer {
	d := &admission.Authorizer{Group: c.Group, TLS: c.TLS != nil}
	if c.TLS != nil {
		d.ServerName = c.TLS.ServerName
		d.Deny = c.Deny
		d.URIs = !c.HostCertificates && admission.NamesMember(c.TLS)
	}
	d.Members = func(yield func(id, address string) bool) {
		if v != nil {
			for _, m := range v.Members.All() {
				if !yield(m.Identity, m.Address) {
					return
				}
			}
		}
		for _, decisions := range later {
			for m := range decisions.Added() {
				if !yield(m.Identity, m.Address) {
					return
				}
			}
		}
	}
	return d
}

// OpenRequest decodes the request of a process that has the right to it. The view is that of
// the process that is asked, or nil.
func (c *Client) OpenRequest(v *membership.View, from transport.Client, b []byte) (control.Request, error) {
	request, err := control.Decode(b)
	if err != nil {
		return nil, err
	}
	right, claim := control.RightOf(request)
	if err = c.Authorizer(v).Check(from.Certificates, right, claim); err != nil && right == access.Operate {
		name, what := describe(request, v)
		c.Operated(from, name, what, err)
	}
	return request, err
}

// Answer records an operator's request that was carried out, or was refused with an error, and
// returns the reply to it. The view is that in which it was asked.
func (c *Client) Answer(v *membership.View, from transport.Client, request control.Request, err error) []byte {
	name, what := describe(request, v)
	c.Operated(from, name, what, err)
	return Accepted(err)
}

// describe returns the name of what an operator asks for, and what it would change.
func describe(request control.Request, v *membership.View) (name, what string) {
	var members membership.Members
	if v != nil {
		members = v.Members
	}
	switch r := request.(type) {
	case control.Force:
		var ids []string
		for _, m := range members.All() {
			if slices.Contains(r.Ranks, m.Rank) {
				ids = append(ids, m.Identity)
			}
		}
		return "force-view", strings.Join(ids, ", ")
	case control.Evict:
		for _, m := range members.All() {
			if m.Rank == r.Rank {
				return "evict", m.Identity
			}
		}
		return "evict", fmt.Sprint("rank ", r.Rank)
	case control.Raise:
		return "raise-version", fmt.Sprint(r.Version)
	}
	return fmt.Sprintf("%T", request), ""
}

// Believe returns an error if the process that replies to a request says that it is another
// one than its certificate is for.
func (c *Client) Believe(from []*x509.Certificate, request control.Request, reply []byte) error {
	var claim access.Claim
	switch request.(type) {
	case control.Founding:
		r, err := founding.DecodeReply(reply)
		if err != nil {
			return nil // a refusal, which the asking process reads
		}
		claim = access.Claim{ID: r.From.ID, Address: r.From.Address}
	case control.Introduce:
		i, err := control.DecodeIntroduction(reply)
		if err != nil {
			return err
		}
		claim = access.Claim{ID: i.ID, Address: i.Address}
	}
	return c.Authorizer(nil).Check(from, access.Enter, claim)
}
