package stream

import "github.com/pleach-go/pleach/protocol"

// What a member knows of the progress of others and of itself, for people that look after
// a group. Nothing here is exact; see lag.go.

// PeerState is what a member knows of the streams between itself and a peer.
type PeerState struct {
	// Backlog is how many bytes wait because the peer's queue is full.
	Backlog int
	// Stalled says that the peer has not answered polls for long.
	Stalled bool
	// Lag is how many segments of this member's stream the peer, or a member below it in
	// the tree, has not accepted although they were sent a second or more before. It is known
	// of peers that this member feeds.
	Lag uint64
	// Missing is how many segments of the peer's stream exist and have not arrived here.
	Missing uint64
}

// PeerStates returns the state of all peers that have one other than zero.
func (m *Member) PeerStates(now protocol.Time) map[protocol.Rank]PeerState {
	states := make(map[protocol.Rank]PeerState)
	change := func(r protocol.Rank, f func(*PeerState)) {
		s := states[r]
		f(&s)
		states[r] = s
	}
	for r, b := range m.backlogs {
		change(r, func(s *PeerState) { s.Backlog = b.bytes })
	}
	for r := range m.stalled {
		change(r, func(s *PeerState) { s.Stalled = true })
	}
	for root, f := range m.flows {
		if f.wanted > f.next {
			change(root, func(s *PeerState) { s.Missing = f.wanted - f.next })
		}
	}
	for r := range m.own.flow.credit.polls { // also of those that have stalled
		if lag := m.lag(now, r); lag > 0 {
			change(r, func(s *PeerState) { s.Lag = lag })
		}
	}
	return states
}

// TakeAwaited reports whether, since it was called last, a root has waited for this member to
// accept something that it lacks.
func (m *Member) TakeAwaited() (awaited bool) {
	awaited, m.awaited = m.awaited, false
	return awaited
}

// Queues is how much waits in a member.
type Queues struct {
	// InboxMessages and InboxBytes wait for the program.
	InboxMessages, InboxBytes int
	// OutboxBytes wait to be sent, and InFlightBytes are sent and not accepted by all.
	OutboxBytes, InFlightBytes int
}

// Queues returns how much waits.
func (m *Member) Queues() Queues {
	return Queues{m.inbox.waiting, m.inbox.bytes, m.own.bytes, m.own.inFlight}
}
