package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Backpressure: while a member waits for a slow one, it takes in no more. The queues of
// its senders fill then, they wait too, and so on up the tree to the root. No member
// loses what can be had by waiting a moment. A member waits for
//
//   - a child whose queue is full (backlog.go),
//   - its program, if the inbox is full (inbox.go),
//   - a slow receiver: a member that requests a segment which is about to be trimmed.
//     While nothing new comes in, nothing is trimmed.
//
// Each wait is bounded, so a stopped member does not stop the others.

// slowReceiverGrace is how long a member waits for a slow receiver after its last
// request. A slow receiver repeats its request within that time, and reports when it
// has caught up.
const slowReceiverGrace = 5 * maxDelay

// slowReceiver is a member that is behind in one root's stream, and is waited for as
// long as it makes progress. Waiting does not help one that requests the same segment
// over and over.
type slowReceiver struct {
	peer, root  protocol.Rank
	next        uint64        // the segment it requested last
	progressAt  protocol.Time // when next last changed
	requestedAt protocol.Time
}

// until returns when the wait ends.
func (s *slowReceiver) until() protocol.Time {
	return min(s.requestedAt+slowReceiverGrace, s.progressAt+stallTimeout)
}

// awaitSlowReceiver begins or extends the wait for a slow receiver.
func (m *Member) awaitSlowReceiver(now protocol.Time, peer, root protocol.Rank, next uint64) {
	i := slices.IndexFunc(m.slowReceivers, func(s slowReceiver) bool { return s.peer == peer && s.root == root })
	if i < 0 {
		i = len(m.slowReceivers)
		m.slowReceivers = append(m.slowReceivers, slowReceiver{peer: peer, root: root, next: next, progressAt: now})
	}
	s := &m.slowReceivers[i]
	if s.next != next {
		s.next, s.progressAt = next, now
	}
	s.requestedAt = now
	m.due = min(m.due, now+slowReceiverGrace)
}

// expireSlowReceivers forgets slow receivers that have stopped requesting. One that
// makes no progress is not waited for, but remembered while it requests: it would be
// waited for anew otherwise.
func (m *Member) expireSlowReceivers(now protocol.Time) {
	m.slowReceivers = slices.DeleteFunc(m.slowReceivers, func(s slowReceiver) bool { return now >= s.requestedAt+slowReceiverGrace })
	for _, s := range m.slowReceivers {
		m.due = min(m.due, s.requestedAt+slowReceiverGrace)
	}
}

// updateSlowReceiver ends the wait for a peer that has caught up to next.
func (m *Member) updateSlowReceiver(f *flow, peer protocol.Rank, next uint64) {
	if len(m.slowReceivers) == 0 || f.store.nearlyTrimmed(next, m.config.KeepBytes) {
		return
	}
	m.slowReceivers = slices.DeleteFunc(m.slowReceivers, func(s slowReceiver) bool { return s.peer == peer && s.root == f.root })
}

// slowReceiversUntil returns when the wait for slow receivers ends, and whether the
// peer is one of them.
func (m *Member) slowReceiversUntil(peer protocol.Rank) (until protocol.Time, is bool) {
	for _, s := range m.slowReceivers {
		until, is = max(until, s.until()), is || s.peer == peer
	}
	return until, is
}

// ThrottledUntil returns the time until which the driver takes in nothing from a peer.
// Any other call may end it earlier. A peer that this member waits for is not
// throttled, or the two would wait for each other. While the next view is agreed upon,
// no peer is.
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

// backlogsUntil returns when the wait for the backlogs of some peers ends.
func (m *Member) backlogsUntil(counts func(protocol.Rank) bool) (until protocol.Time) {
	for peer, b := range m.backlogs {
		if !b.expired && counts(peer) {
			until = max(until, b.since+stallTimeout)
		}
	}
	return until
}

// sendBlocked reports whether backpressure blocks this member's own stream.
func (m *Member) sendBlocked(now protocol.Time) bool {
	if len(m.backlogs) == 0 && len(m.slowReceivers) == 0 {
		return false // the common case
	}
	own := func(peer protocol.Rank) bool { return slices.Contains(m.own.flow.children, peer) }
	until, _ := m.slowReceiversUntil(protocol.NoRank)
	return now < max(until, m.backlogsUntil(own))
}
