package founding

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Request is what a candidate asks another process. It carries no list, because a
// request has to be short; the reply does.
type Request struct {
	From Candidate
	// Expect is how many processes the candidate expects.
	Expect int
	// Promise is the nonce of the receiver, and Term its term, if the sender is
	// promised to it. If zero, it is not.
	Promise, Term uint64
	// Group is the address of a member of a running group that the sender has found.
	Group string
}

// Reply is the answer to a Request.
type Reply struct {
	// From is the process that answers. Member says that it is in a running group.
	From   Candidate
	Member bool
	// Began is the first view of that group, if the receiver is in it and may enter it.
	Began []Candidate
	// Term is the term of a candidate, and Free says that others may promise
	// themselves to it.
	Term uint64
	Free bool
	// Others are addresses worth asking: of candidates, or of a member that was found.
	Others []string
}

// Answer is the reply of a member of a running group. Began are the candidates that
// the group began with, if it is still in its first view.
func Answer(self Candidate, began []Candidate, r *Request) Reply {
	reply := Reply{From: self, Member: true}
	if slices.Contains(began, r.From) {
		reply.Began = began
	}
	return reply
}

// Handle answers a request of another candidate.
func (m *Machine) Handle(now protocol.Time, r *Request) Reply {
	m.now = now
	self := m.config.Self
	if r.From.ID == self.ID {
		return Reply{From: self, Term: m.term} // this process itself, or another one with its ID: neither counts
	}
	m.contact(r.From.Address)
	m.note(r.From.ID, r.Expect)
	switch {
	case m.began != nil:
		return Answer(self, m.began, r)
	case r.Group != "": // the sender wants to be released, and this candidate should look there too
		m.contact(r.Group)
		m.endPromises()
	case m.founder.to.Nonce == 0 && m.group == "" && r.Promise == self.Nonce && r.Term == m.term &&
		r.Expect == m.config.Expect:
		if m.reached(&r.From) {
			m.promised[r.From.ID] = follower{r.From, now}
			m.advance()
		}
	}
	if m.began != nil {
		return Answer(self, m.began, r)
	}
	free := m.group == "" && m.founder.to.Nonce == 0 && m.lowest() == nil
	return Reply{From: self, Term: m.term, Free: free, Others: m.others(r.From.Address)}
}

// reached reports whether a candidate has answered at the address that it names. If not,
// it is asked there at once, and its next promise counts.
func (m *Machine) reached(c *Candidate) bool {
	k := m.contacts[c.Address]
	if k == nil || k.heard > 0 && k.candidate == *c {
		return k != nil
	}
	if !k.asked && !slices.Contains(m.queue, c.Address) {
		m.queue = append(m.queue, c.Address)
	}
	return false
}

// others lists addresses for another candidate to ask.
func (m *Machine) others(but string) (list []string) {
	if m.group != "" {
		return []string{m.group}
	}
	for address, k := range m.contacts {
		if m.fresh(k) && k.candidate.Address == address && address != but {
			list = append(list, address)
		}
	}
	for _, f := range m.promised {
		if f.Address != but {
			list = append(list, f.Address)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// HandleReply handles the reply to the request that Next returned for an address.
func (m *Machine) HandleReply(now protocol.Time, address string, r *Reply) {
	m.now = now
	k := m.contacts[address]
	if k == nil || m.began != nil {
		return
	}
	*k = contact{seed: k.seed, tried: true, candidate: r.From, term: r.Term, free: r.Free}
	if !r.Member && r.From.ID != m.config.Self.ID {
		k.heard = now
	}
	for _, other := range append(r.Others, r.From.Address) {
		m.contact(other)
	}
	f := m.founder
	if f.to.Address == address && (r.From.Nonce != f.to.Nonce || r.Term > f.term || r.Member) {
		m.founder = promise{}
	}
	switch {
	case r.Member && slices.Contains(r.Began, m.config.Self) &&
		(m.founder.to.Nonce == 0 || slices.Contains(r.Began, f.to)):
		m.began = r.Began
	case r.Member && m.group == "":
		m.group = cmp.Or(r.From.Address, address)
		m.endPromises()
	default:
		m.advance()
	}
}

// HandleFailure handles that the request for an address got no reply. Gone means that
// no process listens there.
func (m *Machine) HandleFailure(now protocol.Time, address string, gone bool) {
	m.now = now
	k := m.contacts[address]
	if k == nil {
		return
	}
	k.asked, k.tried = false, true
	if !gone {
		return
	}
	if m.founder.to.Address == address {
		m.founder = promise{}
	}
	k.heard, k.candidate = 0, Candidate{}
	if !k.seed {
		delete(m.contacts, address)
		m.order = slices.DeleteFunc(m.order, func(a string) bool { return a == address })
	}
	m.advance()
}
