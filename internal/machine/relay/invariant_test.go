package relay

import (
	"fmt"
	"slices"
)

// invariant returns what is wrong with the accounts of a journal: whatever happens, they agree
// with what the journal has.
func (j *journal) invariant() error {
	kept, old, held := 0, 0, 0
	records := make(map[record]int)
	var before record
	for i := range j.kept.Len() {
		r := *j.kept.At(i)
		if r.seq >= r.stream.first {
			records[r]++
		}
		if before.stream == r.stream && before.seq >= r.seq {
			return fmt.Errorf("record %d of %v comes after %d", r.seq, r.stream.origin, before.seq)
		}
		before = r
	}
	for _, s := range j.sorted {
		end := uint64(0)
		if s.log.Len() > 0 {
			end = s.at(s.first).end - uint64(s.at(s.first).cost())
		}
		for i := range s.log.Len() {
			e, seq := s.log.At(i), s.first+uint64(i)
			kept += e.cost()
			end += uint64(e.cost())
			if e.end != end {
				return fmt.Errorf("message %d of %v ends at %d, not at %d", seq, s.origin, e.end, end)
			}
			if seq <= s.old {
				old += e.cost()
			} else if records[record{s, seq}] != 1 {
				return fmt.Errorf("message %d of %v has %d records", seq, s.origin, records[record{s, seq}])
			}
		}
		for seq, a := range s.held {
			held += a.cost()
			if s.next > 0 && seq <= s.next {
				return fmt.Errorf("message %d of %v waits, and the next is %d", seq, s.origin, s.next)
			}
		}
		if s.first <= s.old && s.log.Len() == 0 {
			return fmt.Errorf("%v has old messages up to %d from %d on, and the log is empty", s.origin, s.old, s.first)
		}
		if s.next > 0 && s.first+uint64(s.log.Len()) != s.next {
			return fmt.Errorf("%v has %d messages from %d on, and the next is %d", s.origin, s.log.Len(), s.first, s.next)
		}
		if missing := len(s.held) > 0 || s.seen >= max(s.next, 1); s.next > 0 && missing != (j.gaps[s.origin] == s) &&
			s.lost < s.next && (missing || j.config.KeepBytes >= 1<<12) {
			// what a short log has no room for is fetched later
			return fmt.Errorf("something is missing of %v: %t, says the journal %t", s.origin, missing, j.gaps[s.origin] == s)
		}
		if j.streams[s.origin] != s || j.known[string(appendOrigin(nil, s.origin))] != s {
			return fmt.Errorf("%v is not found", s.origin)
		}
	}
	switch {
	case kept != j.keptBytes || old != j.oldBytes || held != j.heldBytes:
		return fmt.Errorf("%d bytes are kept, %d of them old, and %d held: the journal counts %d, %d and %d", kept, old, held,
			j.keptBytes, j.oldBytes, j.heldBytes)
	case kept-old > j.config.KeepBytes && j.kept.Len() > 1:
		return fmt.Errorf("%d bytes are kept, %d of them old, of %d", kept, old, j.config.KeepBytes)
	case held > j.config.KeepBytes:
		return fmt.Errorf("%d bytes are held", held)
	case len(j.sorted) != len(j.streams) || len(j.sorted) != len(j.known) || len(j.sorted) > j.config.MaxOrigins:
		return fmt.Errorf("%d streams are sorted, %d are there, %d are known", len(j.sorted), len(j.streams), len(j.known))
	case !slices.IsSortedFunc(j.sorted, func(a, b *stream) int { return compareOrigins(a.origin, b.origin) }):
		return fmt.Errorf("the streams are not in order")
	}
	return nil
}

// invariant returns what is wrong with the links of a lead.
func (s *shipping) invariant() error {
	for zone, l := range s.links {
		if l.zone != zone || l.inFlight < 0 || len(l.turns) != len(l.waiting) && l.synced {
			return fmt.Errorf("the link to %s: %d in flight, %d turns, %d wait", zone, l.inFlight, len(l.turns), len(l.waiting))
		}
		for _, of := range l.turns {
			if !l.waiting[of] {
				return fmt.Errorf("%v has a turn to %s, and does not wait", of.origin, zone)
			}
		}
		for o, sent := range l.sent {
			// A zone has its own messages first. An origin that was forgotten begins anew, and what
			// was sent of it is not sent again.
			if of := s.streams[o]; of != nil && sent > of.position() && o.Zone != zone && !s.forgot {
				return fmt.Errorf("%d of %v is sent to %s, and there are %d", sent, o, zone, of.position())
			}
		}
		if l.synced && s.active && !slices.ContainsFunc(s.delegates(zone), func(p Peer) bool { return p == l.gateway }) {
			return fmt.Errorf("the gateway of %s is %v", zone, l.gateway)
		}
	}
	return nil
}

// checkInvariants has members judged after every input, or after one of many.
func (m *model) checkInvariants(p *modelMember) {
	m.checked++
	if m.checked%m.every() != 0 || m.t.Failed() {
		return
	}
	if err := p.journal.invariant(); err != nil {
		m.t.Errorf("step %d: %s: %v", m.steps, p.self.ID, err)
	}
	if err := p.shipping.invariant(); err != nil {
		m.t.Errorf("step %d: %s: %v", m.steps, p.self.ID, err)
	}
}

// checkDeadline has a member called although nothing is due: it has nothing to do, or a program that
// calls it at its deadline would be late.
func (m *model) checkDeadline(p *modelMember) {
	due := p.Deadline()
	if due >= 0 && due <= m.now {
		return
	}
	p.Tick(m.now)
	if actions, got := p.Actions(), p.Delivered(); len(actions) > 0 || len(got) > 0 {
		m.t.Errorf("step %d: %s is called at %d, and at %d it does %v and delivers %d messages", m.steps, p.self.ID, due,
			m.now, actions, len(got))
	}
}

// every is how rare checks are: all inputs of a model are checked at first.
func (m *model) every() int { return 1 + m.checked/1000 }
