package membership

import (
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// status lets every member catch up (anti-entropy): once per StatusInterval a member
// sends its view number to the next member on the ring and to its parent in the tree of
// view changes, in turn, and a receiver with a later view answers. The two are connected
// to it anyway, and by the tree all members learn in a logarithmic number of intervals
// what the coordinator knows. While members are unreachable, these two may be as well, or
// may be as far behind, so the receivers are those at distances 1, 2, 4, … on the ring. Without a
// quorum, every other one is a member that is suspected: it may have been started again with its
// vote, and only a connection shows that. A frozen
// member does so more often, and tells the coordinator that it is stuck. In a small group, where
// commits are not corrected, a participant that waits for the next frame of a change asks the owner
// of the ballot.
type status struct {
	due   protocol.Time // 0: the current time is not known yet
	turn  int           // counts up
	asked protocol.Time // no question to a member that is ahead before this time
}

// soon makes the next status due at a time at the latest.
func (s *status) soon(at protocol.Time) { s.due = min(s.due, at) }

// runStatus sends the status to the next member.
func (m *Machine) runStatus(now protocol.Time) {
	s := &m.status
	first := s.due == 0
	s.due = now + m.config.StatusInterval
	if first {
		return
	}
	stuck := m.stuck(now) || m.claims.asked // by this member, and another one coordinates now
	if m.acceptor.frozen {
		frozen := now - m.acceptor.since // asked less and less often: a slow change is not made slower
		s.soon(max(now+max(m.config.AttemptTimeout, frozen/2), m.acceptor.since+2*m.config.AttemptTimeout))
	}
	if p := m.acceptor.current; p != nil && p.flat && p.ballot.Rank != m.config.Self.Rank && m.acceptor.decided == nil {
		m.put(p.ballot.Rank, frame{kind: Status})
	}
	if n := m.view.Members.Len(); n > 1 {
		m.put(m.view.Members.At(m.statusReceiver(n)).Rank, frame{kind: Status})
		s.turn++
	}
	if !stuck || m.proposer != nil || m.acceptor.decided != nil {
		return
	}
	if coordinator := m.lowest(m.excluded()); coordinator != m.config.Self.Rank {
		m.put(coordinator, frame{kind: Status, stuck: true})
		return
	}
	m.acceptor.stuck = true
}

// statusReceiver returns the index of the next receiver, of n members.
func (m *Machine) statusReceiver(n int) int {
	turn := m.status.turn
	if _, _, quorum := m.Quorum(); !quorum {
		if i, ok := m.suspectAt(turn / 2); ok && turn%2 == 1 {
			return i
		}
		turn /= 2
	}
	switch {
	case m.unreachable().count() > 0:
		return (m.self + 1<<(turn%bits.Len(uint(n-1)))) % n
	case turn%2 == 1 && m.self > 0:
		return treeParent(m.self)
	}
	return (m.self + 1) % n
}

// suspectAt returns a member that this one suspects, the next one at each turn.
func (m *Machine) suspectAt(turn int) (index int, ok bool) {
	if suspects := m.suspicions.own; len(suspects) > 0 {
		return m.suspectIndex(suspects[turn%len(suspects)])
	}
	return 0, false
}

// treeParent returns the parent of a member, by their indices, in the interleaved
// binomial tree that the coordinator, index 0, is the root of.
func treeParent(index int) int { return index - 1<<(bits.Len(uint(index))-1) }

// stuck reports whether this member has been frozen for long.
func (m *Machine) stuck(now protocol.Time) bool {
	return m.acceptor.frozen && now >= m.acceptor.since+2*m.config.AttemptTimeout
}

// handleStatus records whether a member of the current view is stuck, abstains, or has lost
// its quorum.
func (m *Machine) handleStatus(f *frame) {
	m.noteAbstention(f.from, f.abstains)
	if f.asks {
		m.put(f.from, frame{kind: Status})
	}
	if f.lost {
		m.ask(m.now, m.doubtWindow())
	}
	if f.stuck && m.proposer == nil {
		m.acceptor.stuck = true
		m.sendAbstention(f.from)
	}
}
