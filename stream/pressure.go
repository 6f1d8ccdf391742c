package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A member takes in no more while somebody is waited for. Then the queues of those
// who send to it fill, they wait too, and so on up the tree to the root: nobody
// loses what can be had by waiting a moment. Who is waited for:
//
//   - a child whose queue is full (backlog.go),
//   - the program, if its inbox is full (inbox.go),
//   - a laggard: a member that asks for something that is about to be forgotten.
//     What is kept for it here stays, while nothing new comes in.
//
// Each for a while only, so that somebody who has stopped holds up nobody.

// hold is how long a laggard is waited for after it has asked. It asks again
// before that, as long as it lags.
const hold = 5 * maxDelay

// awaitLaggard begins to wait, or goes on.
func (m *Member) awaitLaggard(now protocol.Time, peer protocol.Rank) {
	m.laggards[peer] = now + hold
	m.due = min(m.due, now+hold)
}

// leaveLaggards forgets those who have not asked for long.
func (m *Member) leaveLaggards(now protocol.Time) {
	for peer, until := range m.laggards {
		if now >= until {
			delete(m.laggards, peer)
			continue
		}
		m.due = min(m.due, until)
	}
}

// Congested returns until when at most nothing more is to be taken in from a peer.
// Any other call may end it earlier. Whoever is waited for is still heard, or two
// would wait for each other; and everybody is while the next view is agreed upon.
func (m *Member) Congested(from protocol.Rank) (until protocol.Time) {
	if m.frozen || m.laggards[from] > 0 {
		return 0
	}
	for _, t := range m.laggards {
		until = max(until, t)
	}
	if m.inbox.fullAt > 0 {
		until = max(until, m.inbox.fullAt+patience)
	}
	if m.backlogs[from] != nil {
		return until
	}
	return max(until, m.backlogged(func(protocol.Rank) bool { return true }))
}

// backlogged returns until when some peers' queues are waited for.
func (m *Member) backlogged(counts func(protocol.Rank) bool) (until protocol.Time) {
	for peer, b := range m.backlogs {
		if !b.over && counts(peer) {
			until = max(until, b.since+patience)
		}
	}
	return until
}

// waits reports whether this member's own sends are held up.
func (m *Member) waits(now protocol.Time) bool {
	if len(m.backlogs) == 0 {
		return len(m.laggards) > 0
	}
	own := func(peer protocol.Rank) bool { return slices.Contains(m.own.flow.children, peer) }
	return len(m.laggards) > 0 || now < m.backlogged(own)
}
