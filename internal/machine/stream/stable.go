package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Message stability: a root can ask whether all members have what it has sent. The poll
// goes down the tree, and acknowledgments are combined on their way up: a member
// acknowledges when it and all below it have everything before a number. This happens
// on request only, so messages themselves cost no acknowledgment.
//
// A member that has given up a segment never acknowledges it: an acknowledgment is a
// proof. At each poll it reports the loss to the root instead. Nor does a frozen member
// acknowledge what has arrived since it was frozen: the next view may cut the stream before
// it, if its root is not in that view.

// acks is a member's part in acknowledging one flow.
type acks struct {
	wanted uint64 // the number before which everything is polled
	to     protocol.Rank
	acked  uint64                   // the number before which everything is acknowledged
	from   map[protocol.Rank]uint64 // what each child has acknowledged
}

// An unanswered poll is repeated after minPollInterval, then after twice as long each
// time, up to maxPollInterval.
const (
	minPollInterval = 25 * millisecond
	maxPollInterval = 800 * millisecond
)

// Poll asks all members for what this member has sent so far. When all have answered,
// Stable reaches the returned number.
func (m *Member) Poll(now protocol.Time) uint64 {
	f := m.own.flow
	if f.acks.wanted < f.next {
		f.acks.wanted = f.next
		m.own.pollInterval, m.own.incomplete = minPollInterval, nil
		m.own.receipts.polled = m.own.sent()
		m.timePoll(now)
		m.poll(now)
	}
	return f.next
}

// Stable returns the number before which all members of the view have everything of
// this member's stream, as far as Poll has asked.
func (m *Member) Stable() uint64 { return m.own.flow.acks.acked }

// Unanswered returns the children that have not acknowledged for themselves and for all
// below them.
func (m *Member) Unanswered() []protocol.Rank {
	f := m.own.flow
	return slices.DeleteFunc(slices.Clone(f.ackers),
		func(child protocol.Rank) bool { return f.acks.from[child] >= f.acks.wanted })
}

// Incomplete returns the members that have reported, since Poll last asked for
// something new, that they have lost a part of it. The slice is valid until the next
// call.
func (m *Member) Incomplete() []protocol.Rank { return m.own.incomplete }

// handleLoss records that a member has lost something of this one's stream.
func (m *Member) handleLoss(from protocol.Rank) {
	if i, known := slices.BinarySearch(m.own.incomplete, from); !known && m.roster.has(from) {
		m.own.incomplete = slices.Insert(m.own.incomplete, i, from)
		m.own.sample.end() // it would measure how long that member stays in the view
	}
}

// poll repeats the poll, unless all have answered.
func (m *Member) poll(now protocol.Time) {
	f := m.own.flow
	m.own.pollDue = protocol.Never
	m.timeStable(now)
	m.acknowledge(f)
	if f.acks.acked >= f.acks.wanted {
		return
	}
	m.forwardPoll(now, f)
	m.own.pollDue = now + m.own.pollInterval
	m.own.pollInterval = min(2*m.own.pollInterval, maxPollInterval)
	m.due = min(m.due, m.own.pollDue)
}

// forwardPoll polls the members below that have not answered.
func (m *Member) forwardPoll(now protocol.Time, f *flow) {
	for _, r := range f.ackers {
		if f.acks.from[r] < f.acks.wanted {
			m.queueFrame(r, f, frame{kind: poll, first: f.acks.wanted})
			p := f.credit.pollsTo(r) // the answer to it is a credit, too
			p.sent(now)
			if p.stalled(now, stallTimeout) {
				m.setStalled(r, true)
			}
		}
	}
}

// handlePoll handles a poll. The poller may have missed a credit, and gets one at once.
func (m *Member) handlePoll(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	a := &f.acks
	a.to, f.credit.to = from, from
	m.sendCredit(f, m.creditPosition(f))
	if fr.view != m.view {
		return // the root asks again in its next view, or when this member has followed
	}
	a.wanted = max(a.wanted, fr.first)
	a.acked = min(a.acked, fr.first-1) // the last acknowledgment may have been lost
	m.acknowledge(f)
	m.forwardPoll(now, f)
	if f.lostBefore(a.wanted) {
		m.queueFrame(f.root, f, frame{kind: trimmed, first: f.next})
	}
}

// handleAck handles an acknowledgment, which speaks for the members below in this view.
func (m *Member) handleAck(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if f.acks.from == nil {
		f.acks.from = make(map[protocol.Rank]uint64)
	}
	f.acks.from[from] = max(f.acks.from[from], fr.first)
	if f == m.own.flow {
		m.timeStable(now)
	}
	m.acknowledge(f)
}

// acknowledge answers a poll, if there is one and everything is here and below.
func (m *Member) acknowledge(f *flow) {
	a := &f.acks
	if a.acked >= a.wanted || f.next < a.wanted || m.frozen && f.frozenAt < a.wanted || f.lostBefore(a.wanted) {
		return
	}
	for _, r := range f.ackers {
		if a.from[r] < a.wanted {
			return
		}
	}
	a.acked = a.wanted
	if f == m.own.flow {
		m.own.receipts.proven = m.own.receipts.polled
		return
	}
	m.queueFrame(a.to, f, frame{kind: ack, first: a.wanted})
}

// restartAcks starts over with the members of a new view: what the children have
// acknowledged was for others.
func (m *Member) restartAcks(now protocol.Time, f *flow) {
	f.acks.from = nil
	if f != m.own.flow {
		return
	}
	m.own.incomplete = nil
	m.poll(now)
}

// Received returns the number before which everything of a root's stream is here, and
// whether nothing before it was given up. It returns false if this member has no such
// stream. It is how a simulation checks acknowledgments.
func (m *Member) Received(root MemberID) (before uint64, whole, ok bool) {
	f := m.flows[root.Rank]
	if f == nil || f.incarnation != root.Incarnation {
		f = m.endedFlow(&frame{kind: request, root: root.Rank, incarnation: root.Incarnation})
	}
	if f == nil {
		return 0, false, false
	}
	return f.next, f.lost == 0, true
}
