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
	s.due = now + m.config.Idle
	if first {
		return
	}
	stuck := m.stuck(now)
	if m.round.frozen {
		s.soon(max(now+m.config.Bound, m.round.since+2*m.config.Bound))
	}
	if p := m.round.part; p != nil && p.flat && p.ballot.Rank != m.config.Self.Rank && m.round.decided == nil {
		m.put(p.ballot.Rank, frame{kind: Status})
		s.soon(now + m.config.Bound)
	}
	if n := len(m.view.Members); n > 1 {
		// Those at distances 1, 2, 4, …: news spread as fast, and a member needs
		// few connections.
		if s.distance *= 2; s.distance == 0 || s.distance >= n {
			s.distance = 1
		}
		m.put(m.view.Members[(m.self+s.distance)%n].Rank, frame{kind: Status})
	}
	if !stuck || m.lead != nil || m.round.decided != nil {
		return
	}
	if leader := m.lowest(m.doomed(now)); leader != m.config.Self.Rank {
		m.put(leader, frame{kind: Status, stuck: true})
		return
	}
	m.round.stuck = true
	m.consider(now)
}

// stuck reports whether this member has been frozen for long.
func (m *Machine) stuck(now protocol.Time) bool {
	return m.round.frozen && now >= m.round.since+2*m.config.Bound
}

// hearStatus takes in that a member of the present view is stuck.
func (m *Machine) hearStatus(f *frame) {
	if f.stuck && m.lead == nil {
		m.round.stuck = true
	}
}
