package membership

import "github.com/pleach-go/pleach/protocol"

// status sees to it that nobody stays behind: every now and then a member tells
// another, in turn, which view it is in, and who knows of a later one answers.
// Who is frozen does so more often, and tells the coordinator that it is stuck. In
// a small group, where commits are not corrected, who takes part in a change and hears
// no more of it asks whose it is.
type status struct {
	due      protocol.Time // 0: the clock has not been seen yet
	distance int           // to whom it was told last
	asked    protocol.Time // no question to one who is ahead before
}

// soon has it told at the latest at a time.
func (s *status) soon(at protocol.Time) {
	if s.due == 0 || at < s.due {
		s.due = at
	}
}

// runStatus tells the next member in turn.
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
		// Those at distances 1, 2, 4, …: news spread as fast, and a member needs
		// few connections.
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

// hearStatus takes in that a member of the present view is stuck.
func (m *Machine) handleStatus(f *frame) {
	if f.stuck && m.proposer == nil {
		m.acceptor.stuck = true
	}
}
