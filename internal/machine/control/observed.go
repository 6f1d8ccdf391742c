package control

import "github.com/pleach-go/pleach/internal/machine/membership"

// A nonce proves to the other members that a connection comes from the process that they know
// by it. So no reply to a request that needs only the right to observe carries one.

// Observed returns a view as observers get it: each nonce is replaced by its [Mark], which
// still tells two processes apart.
func Observed(v membership.View) membership.View {
	v.Members, v.Former = marked(v.Members), marked(v.Former)
	return v
}

// Observed returns an introduction as observers get it, without nonces: the view has marks, and
// there are no decisions.
func (i Introduction) Observed() Introduction {
	if i.View != nil {
		v := Observed(*i.View)
		i.View, i.Decisions = &v, membership.Decisions{}
	}
	return i
}

// marked returns members with marks instead of nonces. A member without a nonce has no mark.
func marked(l membership.Members) membership.Members {
	members := make([]membership.Member, 0, l.Len())
	for _, m := range l.All() {
		o := *m
		if o.Nonce != 0 {
			o.Nonce = Mark(o.Identity, o.Nonce)
		}
		members = append(members, o)
	}
	return membership.MembersOf(members...)
}
