package membership

import "github.com/pleach-go/pleach/protocol"

// status lets every member catch up (anti-entropy): once per StatusInterval a member
// sends its view number to another member, a different one each time, and a receiver
// with a later view answers. A frozen member does so more often, and tells the
// coordinator that it is stuck. In a small group, where commits are not corrected, a
// participant that waits for the next frame of a change asks the owner of the ballot.
type status struct {
	due      protocol.Time // 0: the current time is not known yet
	distance int           // to the last receiver, in indices
	asked    protocol.Time // no question to a member that is ahead before this time
}

// soon makes the next status due at a time at the latest.
func (s *status) soon(at protocol.Time) {
	if s.due == 0 || at < s.due {
		s.due = at
	}
}

// runStatus sends the status to the next member.
func (m *Machine) runStatus(now protocol.Time) {
	s := &m.status
	first := s.due == 0
	s.due = now + m.config.StatusInterval
	if first {
		return
	}
	stuck := m.stuck(now)
	if m.acceptor.frozen {
		s.soon(max(now+m.config.AttemptTimeout, m.acceptor.since+2*m.config.AttemptTimeout))
	}
	if p := m.acceptor.current; p != nil && p.flat && p.ballot.Rank != m.config.Self.Rank && m.acceptor.decided == nil {
		m.put(p.ballot.Rank, frame{kind: Status})
		s.soon(now + m.config.AttemptTimeout)
	}
	if n := len(m.view.Members); n > 1 {
		// Distances 1, 2, 4, … inform all members in a logarithmic number of
		// intervals, and a member needs few connections.
		if s.distance *= 2; s.distance == 0 || s.distance >= n {
			s.distance = 1
		}
		m.put(m.view.Members[(m.self+s.distance)%n].Rank, frame{kind: Status})
	}
	if !stuck || m.proposer != nil || m.acceptor.decided != nil {
		return
	}
	if coordinator := m.lowest(m.excluded(now)); coordinator != m.config.Self.Rank {
		m.put(coordinator, frame{kind: Status, stuck: true})
		return
	}
	m.acceptor.stuck = true
	m.consider(now)
}

// stuck reports whether this member has been frozen for long.
func (m *Machine) stuck(now protocol.Time) bool {
	return m.acceptor.frozen && now >= m.acceptor.since+2*m.config.AttemptTimeout
}

// handleStatus records that a member of the current view is stuck.
func (m *Machine) handleStatus(f *frame) {
	if f.stuck && m.proposer == nil {
		m.acceptor.stuck = true
	}
}
