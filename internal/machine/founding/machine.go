package founding

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Candidate is a process that wants to begin a group with others.
type Candidate struct {
	// ID names the process across restarts, and Nonce tells its starts apart.
	ID    string
	Nonce uint64
	// Address is where it is reached, and Domain its failure domain.
	Address, Domain string
	// Version is the highest protocol version that it speaks.
	Version uint16
}

// Config describes a candidate.
type Config struct {
	Self Candidate
	// Expect is how many candidates begin a group.
	Expect int
	// Seeds are the addresses to ask first.
	Seeds []string
	// Starts is how many processes have had the nonce of Self: each begins with a higher
	// term, so that promises to the ones before end.
	Starts uint64
	// Interval is how often a candidate asks its founder. If zero, 100 ms, and a
	// millisecond more for each expected process.
	Interval protocol.Time
}

const (
	millisecond protocol.Time = 1e6

	// maxContacts bounds the addresses that a candidate knows.
	maxContacts = 4096
	// fanout is the number of candidates, besides its founder, that a candidate asks per interval.
	fanout = 3
	// freshness is for how many intervals a candidate counts after it was heard.
	freshness = 10
)

// Machine is one candidate. See the package comment for how to drive it.
type Machine struct {
	config Config
	now    protocol.Time

	contacts map[string]*contact // by address
	order    []string            // their addresses, in the order of asking
	turn     int                 // where in the order the next round begins
	queue    []string            // addresses to ask now
	due      protocol.Time       // of the next round of questions

	founder  promise // what this candidate has promised; zero: nothing
	term     uint64  // grows whenever the promises of others to this candidate end
	promised map[string]follower
	complete protocol.Time // since when enough are promised; 0: they are not

	differing map[string]int // how many processes other candidates expect, by ID, if not as many

	group string      // the address of a member of a running group
	began []Candidate // the first view
}

// contact is an address, and what was last heard from there.
type contact struct {
	seed      bool
	asked     bool // a request is on its way
	tried     bool // a request has been answered, or has failed
	candidate Candidate
	heard     protocol.Time // directly from it; 0: never
	term      uint64
	free      bool // it is not promised to another
}

// promise is a promise to one term of a founder.
type promise struct {
	to   Candidate
	term uint64
}

// follower is a candidate that is promised to this one.
type follower struct {
	Candidate
	heard protocol.Time
}

// New returns the machine of a candidate.
func New(c Config) *Machine {
	if c.Interval == 0 {
		c.Interval = (100 + protocol.Time(c.Expect)) * millisecond
	}
	m := &Machine{
		config: c, contacts: make(map[string]*contact), promised: make(map[string]follower),
		differing: make(map[string]int), term: c.Starts<<32 + 1,
	}
	for _, address := range c.Seeds {
		if k := m.contact(address); k != nil {
			k.seed = true
		}
	}
	return m
}

// Outcome returns the candidates that are the first view of the group, in order of
// their IDs; or the address of a member of a running group; or neither as long as this
// process is a candidate.
func (m *Machine) Outcome() (began []Candidate, group string) {
	if m.founder.to.Nonce != 0 && m.began == nil {
		return nil, "" // the founder may have begun with this candidate
	}
	return m.began, m.group
}

// Known returns how many candidates this one has heard from lately, itself included,
// and the one that it waits for: its founder, if that is another.
func (m *Machine) Known() (count int, founder Candidate) {
	for _, k := range m.contacts {
		if m.fresh(k) && k.candidate.ID != m.config.Self.ID {
			count++
		}
	}
	return count + 1, m.founder.to
}

// Disagrees returns the candidate with the lowest ID that expects another number of processes,
// and that number.
func (m *Machine) Disagrees() (id string, expect int, ok bool) {
	for other, e := range m.differing {
		if !ok || other < id {
			id, expect, ok = other, e, true
		}
	}
	return id, expect, ok
}

// note takes in how many processes another candidate expects.
func (m *Machine) note(id string, expect int) {
	delete(m.differing, id)
	if expect != m.config.Expect && len(m.differing) < maxContacts {
		m.differing[id] = expect
	}
}

// Lost says that the running group of the outcome does not let this process join. It
// is a candidate again.
func (m *Machine) Lost(now protocol.Time) {
	m.now, m.group = now, ""
}

// Deadline returns when Next must be called again if nothing else happens.
func (m *Machine) Deadline() protocol.Time { return m.due }

// Next returns the next request to send and its address, or false if there is none
// for now. There is one request to an address at a time.
func (m *Machine) Next(now protocol.Time) (address string, r Request, ok bool) {
	m.now = now
	if m.due <= now {
		m.due = now + m.config.Interval
		m.plan()
	}
	for len(m.queue) > 0 {
		address, m.queue = m.queue[0], m.queue[1:]
		k := m.contacts[address]
		if k == nil || k.asked || k.candidate == m.config.Self {
			continue
		}
		k.asked = true
		r = Request{From: m.config.Self, Expect: m.config.Expect, Group: m.group}
		if f := m.founder; f.to.Address == address {
			r.Promise, r.Term = f.to.Nonce, f.term
		}
		return address, r, true
	}
	return "", Request{}, false
}

// plan chooses the addresses to ask in this round: the founder, those never tried, and
// some of the others in turn.
func (m *Machine) plan() {
	m.advance()
	m.queue = m.queue[:0]
	if m.founder.to.Nonce != 0 {
		m.queue = append(m.queue, m.founder.to.Address)
	}
	others, last := 0, 0
	for i := range m.order {
		at := (m.turn + i) % len(m.order)
		address := m.order[at]
		switch k := m.contacts[address]; {
		case address == m.founder.to.Address:
		case !k.tried:
			m.queue = append(m.queue, address)
		case others < fanout && k.candidate != m.config.Self:
			others, last = others+1, at
			m.queue = append(m.queue, address)
		}
	}
	m.turn = last + 1
}

// contact returns the contact of an address, and makes it if it is new. It returns nil
// if there are too many.
func (m *Machine) contact(address string) *contact {
	k := m.contacts[address]
	if k == nil && len(m.contacts) < maxContacts && address != "" {
		k = &contact{}
		m.contacts[address] = k
		m.order = append(m.order, address)
	}
	return k
}

// fresh reports whether a candidate was heard lately.
func (m *Machine) fresh(k *contact) bool {
	return k.heard > 0 && m.now-k.heard <= freshness*m.config.Interval
}

// advance promises this candidate to the one with the lowest ID, or begins the group if
// enough are promised to this one.
func (m *Machine) advance() {
	if m.began != nil || m.founder.to.Nonce != 0 {
		return
	}
	if m.group != "" || !m.triedSeeds() {
		return // it joins a running group, or may still find one
	}
	if lowest := m.lowest(); lowest != nil {
		if lowest.free {
			m.endPromises()
			m.founder = promise{lowest.candidate, lowest.term}
		}
		return
	}
	m.begin()
}

// triedSeeds reports whether every seed has answered or failed once.
func (m *Machine) triedSeeds() bool {
	for _, k := range m.contacts {
		if k.seed && !k.tried && k.candidate != m.config.Self {
			return false
		}
	}
	return true
}

// lowest returns the candidate with the lowest ID, or nil if that is this one.
func (m *Machine) lowest() (lowest *contact) {
	id := m.config.Self.ID
	for _, address := range m.order {
		if k := m.contacts[address]; m.fresh(k) && k.candidate.ID < id {
			id, lowest = k.candidate.ID, k
		}
	}
	return lowest
}

// endPromises ends the promises of others to this candidate.
func (m *Machine) endPromises() {
	clear(m.promised)
	m.term++
	m.complete = 0
}

// begin begins the group if enough are promised, and each has repeated its promise
// since: a group whose first view has many dead members could not decide anything.
func (m *Machine) begin() {
	repeated := true
	for id, f := range m.promised {
		if m.now-f.heard > freshness*m.config.Interval {
			delete(m.promised, id) // it may count again when it repeats its promise
			continue
		}
		repeated = repeated && m.complete > 0 && f.heard > m.complete
	}
	switch {
	case len(m.promised)+1 < m.config.Expect:
		m.complete = 0
	case m.complete == 0 && len(m.promised) > 0:
		m.complete = m.now
	case repeated:
		m.beginWithFollowers()
	}
}

// beginWithFollowers makes this candidate and its followers the first view.
func (m *Machine) beginWithFollowers() {
	m.began = []Candidate{m.config.Self}
	for _, f := range m.promised {
		m.began = append(m.began, f.Candidate)
	}
	slices.SortFunc(m.began, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
}
