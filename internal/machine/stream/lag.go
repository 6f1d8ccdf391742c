package stream

import "github.com/pleach-go/pleach/protocol"

// Lag for people who look after a group: how much of this member's stream a peer has not
// accepted although it was sent a while ago. Peers grant credits for many bytes at a time, so
// segments that a peer has not granted are late only if it was asked for them, or has granted
// others since.

// lateAfter is how long after it was sent a segment is late.
const lateAfter = 1000 * millisecond

// sendTimes tells which segments were sent before a time, to half of lateAfter.
type sendTimes struct {
	marks [8]sendMark // a ring
	last  int
}

// sendMark says that everything before a number was sent by a time. It begins with one send, and
// takes in those that follow within half of lateAfter.
type sendMark struct {
	before    uint64
	began, at protocol.Time
}

// note records that everything before a number is sent.
func (s *sendTimes) note(now protocol.Time, before uint64) {
	if now-s.marks[s.last].began >= lateAfter/2 {
		s.last = (s.last + 1) % len(s.marks)
		s.marks[s.last].began = now
	}
	s.marks[s.last].before, s.marks[s.last].at = before, now
}

// sentBefore returns a number before which everything was sent by a time.
func (s *sendTimes) sentBefore(t protocol.Time) (before uint64) {
	for _, m := range s.marks {
		if m.at <= t {
			before = max(before, m.before)
		}
	}
	return before
}

// lag returns how many late segments of this member's stream a peer has not accepted, as far as
// is known: when its last credit arrived or, if it leaves polls unanswered, now.
func (m *Member) lag(now protocol.Time, r protocol.Rank) uint64 {
	own := m.own.flow
	p := own.credit.polls[r]
	if p == nil {
		return 0 // nothing is known, and nothing was asked for
	}
	known := p.credit
	switch {
	case m.stalled[r]:
		known = now
	case now-known > 2*lateAfter:
		return 0 // it was not asked since, and has nothing to grant
	}
	accepted := max(own.credit.from[r].all, own.acks.from[r], own.viewStart)
	sent := m.own.sentAt.sentBefore(known - lateAfter)
	return sent - min(sent, accepted)
}
