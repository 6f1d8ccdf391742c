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

// hold is how long a laggard is waited for after it has asked. It asks again before
// that, as long as it lags, and says so when it does not any more.
const slowReceiverGrace = 5 * maxDelay

// laggard is how long a member that lags is waited for in one root's stream: until
// a while after it last asked, if it gets anywhere. One that asks for the same
// thing over and over cannot be helped by waiting.
type slowReceiver struct {
	peer, root protocol.Rank
	next       uint64        // what it asks for
	moved      protocol.Time // when that has changed
	asked      protocol.Time
}

// until is how long it is waited for.
func (l *slowReceiver) until() protocol.Time {
	return min(l.asked+slowReceiverGrace, l.moved+stallTimeout)
}

// awaitLaggard begins to wait, or goes on.
func (m *Member) awaitSlowReceiver(now protocol.Time, peer, root protocol.Rank, next uint64) {
	i := slices.IndexFunc(m.slowReceivers, func(s slowReceiver) bool { return s.peer == peer && s.root == root })
	if i < 0 {
		i = len(m.slowReceivers)
		m.slowReceivers = append(m.slowReceivers, slowReceiver{peer: peer, root: root, next: next, moved: now})
	}
	s := &m.slowReceivers[i]
	if s.next != next {
		s.next, s.moved = next, now
	}
	s.asked = now
	m.due = min(m.due, now+slowReceiverGrace)
}

// leaveLaggards forgets those who have not asked for a while. One that has been
// given up on is remembered as long as it asks, or it would be waited for again.
func (m *Member) expireSlowReceivers(now protocol.Time) {
	m.slowReceivers = slices.DeleteFunc(m.slowReceivers, func(l slowReceiver) bool { return now >= l.asked+slowReceiverGrace })
	for _, l := range m.slowReceivers {
		m.due = min(m.due, l.asked+slowReceiverGrace)
	}
}

// hearLaggard no longer waits for one that has come so far that it does not lag.
func (m *Member) updateSlowReceiver(f *flow, peer protocol.Rank, next uint64) {
	if len(m.slowReceivers) == 0 || f.store.nearlyTrimmed(next, m.config.KeepBytes) {
		return
	}
	m.slowReceivers = slices.DeleteFunc(m.slowReceivers, func(l slowReceiver) bool { return l.peer == peer && l.root == f.root })
}

// lagging returns until when laggards are waited for, and whether a peer is one.
func (m *Member) slowReceiversUntil(peer protocol.Rank) (until protocol.Time, is bool) {
	for _, l := range m.slowReceivers {
		until, is = max(until, l.until()), is || l.peer == peer
	}
	return until, is
}

// ThrottledUntil returns until when at most nothing more is to be taken in from a peer.
// Any other call may end it earlier. Whoever is waited for is still heard, or two
// would wait for each other; and everybody is while the next view is agreed upon.
func (m *Member) ThrottledUntil(from protocol.Rank) protocol.Time {
	until, isSlow := m.slowReceiversUntil(from)
	if m.frozen || isSlow {
		return 0
	}
	if m.inbox.fullAt > 0 {
		until = max(until, m.inbox.fullAt+stallTimeout)
	}
	if m.backlogs[from] != nil {
		return until
	}
	return max(until, m.backlogsUntil(func(protocol.Rank) bool { return true }))
}

// backlogged returns until when some peers' queues are waited for.
func (m *Member) backlogsUntil(counts func(protocol.Rank) bool) (until protocol.Time) {
	for peer, b := range m.backlogs {
		if !b.expired && counts(peer) {
			until = max(until, b.since+stallTimeout)
		}
	}
	return until
}

// waits reports whether this member's own sends are held up.
func (m *Member) sendBlocked(now protocol.Time) bool {
	if len(m.backlogs) == 0 && len(m.slowReceivers) == 0 {
		return false // as nearly always
	}
	own := func(peer protocol.Rank) bool { return slices.Contains(m.own.flow.children, peer) }
	until, _ := m.slowReceiversUntil(protocol.NoRank)
	return now < max(until, m.backlogsUntil(own))
}
