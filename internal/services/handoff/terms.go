package handoff

import (
	"encoding/binary"
	"slices"
)

// Terms are what the members of a set of shards agree on before one of them begins to own a
// partition: settings, and the base of tokens.
//
// A token is the base plus the number of the view. View numbers begin again with a group, so the
// base is above all tokens that were given before: each process brings a floor, from its disk or
// its clock, and the member with the lowest rank makes the base of the highest floor. Members that
// join later adopt the base that there is. Bases never fall, and a member begins only when all
// members have its own base. So a later owner has a base that is at least as high.
//
// Members of builds without terms have no handler for them, but report. While such a member takes
// part and no base is known, tokens are view numbers, as they are for that member.
type Terms struct {
	Settings
	// Floor is a number that the base is not below, if there is none yet.
	Floor uint64
	// Base is the base that the sender knows, or 0.
	Base uint64
}

// Settings are those of a set of shards. All members use the same.
type Settings struct {
	Partitions     int
	Lease, Handoff Time
	// Weights is a digest of the members' weights in the sender's view; 0 if all are 1.
	Weights uint64
}

// MaxFloor bounds floors, so that tokens do not overflow.
const MaxFloor = 1 << 62

// agreement is what a machine knows of the terms of a set of shards.
type agreement struct {
	Terms                     // its own
	of     map[Process]*stand // members of the view; nil: not known
	asked  map[Process]bool   // members that were asked for terms: whether they had reported
	agreed bool               // all members agree, so that a partition may begin
}

// stand is where another member stands.
type stand struct {
	Terms
	view   uint64 // the sender's
	absent bool   // it has no terms: it takes no part, or is of a build without them
}

// Conflict is a setting in which two members differ.
type Conflict struct {
	With    Process
	Setting string
	Own     uint64
	Other   uint64
}

// difference returns the first setting in which two members differ.
func (s *Settings) difference(o *Settings) (c Conflict, differ bool) {
	for _, d := range []Conflict{
		{Setting: "Partitions", Own: uint64(s.Partitions), Other: uint64(o.Partitions)},
		{Setting: "Lease", Own: uint64(s.Lease), Other: uint64(o.Lease)},
		{Setting: "HandoffTimeout", Own: uint64(s.Handoff), Other: uint64(o.Handoff)},
		{Setting: "Weight", Own: s.Weights, Other: o.Weights},
	} {
		if d.Own != d.Other {
			return d, true
		}
	}
	return c, false
}

// Terms returns the terms of this process, for members that lack them.
func (m *Machine) Terms() Message {
	return Message{Kind: TermsOf, View: m.view, From: m.self, Terms: m.terms.Terms}
}

func (m *Machine) announce() { m.out.Send = append(m.out.Send, m.Terms()) }

// installTerms follows a view: it deletes the terms of former members, and sends new members
// those of this process.
func (m *Machine) installTerms(members []Member) {
	m.terms.Weights = weights(members)
	known, fresh := m.terms.of, m.terms.Weights != 0
	m.terms.of = make(map[Process]*stand, len(members))
	for p := range m.in {
		if s := known[p]; s != nil {
			m.terms.of[p] = s
		} else {
			fresh = true
		}
	}
	if fresh {
		m.announce()
	}
}

// takeTerms takes the terms of another member.
func (m *Machine) takeTerms(msg *Message) {
	if _, present := m.in[msg.From]; !present {
		return
	}
	s := &stand{msg.Terms, msg.View, false}
	if old := m.terms.of[msg.From]; old != nil && !old.absent && old.view > s.view {
		return
	}
	m.terms.of[msg.From] = s
	if c, ok := m.conflict(msg.From); ok {
		if c.Setting != "Weight" { // what begins after this set is another one: its tokens are higher
			m.terms.Floor = max(m.terms.Floor, min(s.Base+1, MaxFloor))
		}
		return
	}
	if s.Base > m.terms.Base {
		m.terms.Base = s.Base
		m.announce()
	}
	m.settle()
}

// Absent says that a member which was asked has no terms. That does not count if it was asked
// before it began to take part.
func (m *Machine) Absent(p Process) {
	reported, present := m.in[p]
	if before, asked := m.terms.asked[p]; present && asked && before == reported && m.terms.of[p] == nil {
		m.terms.of[p] = &stand{absent: true}
		m.settle()
	}
}

// appeared says that a member has reported. If it had no terms before, it may have some now.
func (m *Machine) appeared(p Process) {
	if s := m.terms.of[p]; s != nil && s.absent && !m.in[p] {
		delete(m.terms.of, p)
	}
}

// current reports whether the terms of a member are those of this view, where that matters.
func (m *Machine) current(s *stand) bool {
	return s.absent || s.view == m.view || s.Weights == 0 && m.terms.Weights == 0
}

// conflict returns the setting in which a member differs from this process.
func (m *Machine) conflict(p Process) (Conflict, bool) {
	s := m.terms.of[p]
	if s == nil || s.absent || !m.current(s) {
		return Conflict{}, false
	}
	c, differ := m.terms.difference(&s.Settings)
	c.With = p
	return c, differ
}

// Conflict returns a setting in which a member differs from this process. While there is one,
// nothing begins.
func (m *Machine) Conflict() (first Conflict, found bool) {
	for p := range m.in {
		if c, ok := m.conflict(p); ok && (!found || p.Rank < first.With.Rank) {
			first, found = c, true
		}
	}
	return first, found
}

// AskTerms returns the members whose terms this process lacks, in order of rank. It asks them.
func (m *Machine) AskTerms() (missing []Process) {
	m.terms.asked = make(map[Process]bool)
	for p, reported := range m.in {
		if s := m.terms.of[p]; p != m.self && (s == nil || !m.current(s) || !s.absent && s.Base != m.terms.Base) {
			missing = append(missing, p)
			m.terms.asked[p] = reported
		}
	}
	slices.SortFunc(missing, func(a, b Process) int { return a.Rank - b.Rank })
	return missing
}

// settle follows a change of what is known. If no member has a base, the member with the lowest rank
// of those that take part makes it of all floors.
func (m *Machine) settle() {
	known, lowest, before := m.view > 0, true, false
	same, base := true, max(m.terms.Floor, 1)
	for p, reported := range m.in {
		s := m.terms.of[p]
		switch {
		case p == m.self:
		case s == nil || !m.current(s):
			known = false
		case s.absent:
			before = before || reported
		default:
			_, differ := m.conflict(p)
			known, lowest = known && !differ, lowest && p.Rank > m.self.Rank
			same, base = same && s.Base == m.terms.Base, max(base, s.Floor)
		}
	}
	if known && lowest && !before && m.terms.Base == 0 {
		m.terms.Base = base
		m.announce()
		same = len(m.in) == m.absent()+1
	}
	m.terms.agreed = known && same && (m.terms.Base > 0 || before)
}

// absent counts members that have no terms.
func (m *Machine) absent() (n int) {
	for _, s := range m.terms.of {
		if s.absent {
			n++
		}
	}
	return n
}

// token is that of a partition which begins now.
func (m *Machine) token() uint64 { return m.terms.Base + m.view }

// Ceiling returns a number that no token is above which this process gives in its view.
func (m *Machine) Ceiling() uint64 { return m.token() }

// weights returns a digest of weights, or 0 if all are 1.
func weights(members []Member) (digest uint64) {
	even := true
	for i := range members {
		even = even && members[i].Weight == 1
		digest += mix(Hash(members[i].ID) ^ mix(uint64(members[i].Weight)+1))
	}
	if even {
		return 0
	}
	return max(digest, 1)
}

func (t *Terms) encode(b []byte) []byte {
	for _, n := range []uint64{uint64(t.Partitions), uint64(t.Lease), uint64(t.Handoff), t.Weights, t.Floor, t.Base} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (t *Terms) decode(d *decoder) error {
	partitions, lease, handoff := d.uint(), d.uint(), d.uint()
	t.Weights, t.Floor, t.Base = d.uint(), d.uint(), d.uint()
	if d.bad || len(d.b) > 0 || max(partitions, lease, handoff, t.Floor, t.Base) > MaxFloor {
		return ErrMalformed
	}
	t.Partitions, t.Lease, t.Handoff = int(partitions), Time(lease), Time(handoff)
	return nil
}
