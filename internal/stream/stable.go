package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A root can ask whether everybody has what it has sent. The question goes down
// the tree, the answers are joined on their way up: a member answers when it and
// all below it have everything before a number. Nothing of this is done unless
// asked for, so messages themselves cost no acknowledgment.
//
// A member that has given up a part never answers for it: the answer is a proof. It
// tells the root instead, each time it is asked.

// acks is a member's part in answering for one flow.
type acks struct {
	wanted uint64 // asked for: everything before
	to     protocol.Rank
	acked  uint64                   // answered already
	from   map[protocol.Rank]uint64 // what each child has answered
}

// pollAgain is after what time a question is asked again that is not answered.
const (
	minPollInterval = 25 * millisecond
	maxPollInterval = 800 * millisecond
)

// Poll asks everybody for what this member has sent so far. When all have
// answered, Stable has come up to the number it returns.
func (m *Member) Poll(now protocol.Time) uint64 {
	f := m.own.flow
	if f.acks.wanted < f.next {
		f.acks.wanted = f.next
		m.own.pollInterval, m.own.incomplete = minPollInterval, nil
		m.poll(now)
	}
	return f.next
}

// Stable is the number before which everybody in the view has everything of this
// member's stream, as far as it has asked.
func (m *Member) Stable() uint64 { return m.own.flow.acks.acked }

// Unanswered are those next below this member who have not answered for
// themselves and those below them.
func (m *Member) Unanswered() []protocol.Rank {
	f := m.own.flow
	return slices.DeleteFunc(slices.Clone(f.children), func(child protocol.Rank) bool { return f.acks.from[child] >= f.acks.wanted })
}

// Lossy are those who have said, since Poll has last asked something new, that they
// have lost a part of it. It is valid until the next call.
func (m *Member) Incomplete() []protocol.Rank { return m.own.incomplete }

// hearLoss notes that a member has lost something of this one's stream.
func (m *Member) handleLoss(from protocol.Rank) {
	if i, known := slices.BinarySearch(m.own.incomplete, from); !known && m.roster.has(from) {
		m.own.incomplete = slices.Insert(m.own.incomplete, i, from)
	}
}

// poll asks again, unless everybody has answered.
func (m *Member) poll(now protocol.Time) {
	f := m.own.flow
	m.own.pollDue = protocol.Never
	if m.acknowledge(f); f.acks.acked >= f.acks.wanted {
		return
	}
	m.forwardPoll(f)
	m.own.pollDue = now + m.own.pollInterval
	m.own.pollInterval = min(2*m.own.pollInterval, maxPollInterval)
	m.due = min(m.due, m.own.pollDue)
}

// passPoll asks the children who have not answered.
func (m *Member) forwardPoll(f *flow) {
	for _, child := range f.children {
		if f.acks.from[child] < f.acks.wanted {
			m.queueFrame(child, f, frame{kind: poll, first: f.acks.wanted})
		}
	}
}

// hearPoll takes a question.
func (m *Member) handlePoll(f *flow, from protocol.Rank, fr *frame) {
	a := &f.acks
	a.to = from
	a.wanted = max(a.wanted, fr.first)
	a.acked = min(a.acked, fr.first-1) // the last answer may have been lost
	if m.acknowledge(f); a.acked < a.wanted {
		m.forwardPoll(f)
	}
	if f.lostBefore(a.wanted) {
		m.queueFrame(f.root, f, frame{kind: trimmed, first: f.next})
	}
}

// hearAck takes an answer.
func (m *Member) handleAck(f *flow, from protocol.Rank, fr *frame) {
	if f.acks.from == nil {
		f.acks.from = make(map[protocol.Rank]uint64)
	}
	f.acks.from[from] = max(f.acks.from[from], fr.first)
	m.acknowledge(f)
}

// acknowledge answers if there is a question, and everything is here and below.
func (m *Member) acknowledge(f *flow) {
	a := &f.acks
	if a.acked >= a.wanted || f.next < a.wanted || f.lostBefore(a.wanted) {
		return
	}
	for _, child := range f.children {
		if a.from[child] < a.wanted {
			return
		}
	}
	a.acked = a.wanted
	if f != m.own.flow {
		m.queueFrame(a.to, f, frame{kind: ack, first: a.wanted})
	}
}

// reAcknowledge begins anew among those who are there now: what those below have
// answered was for others.
func (m *Member) restartAcks(now protocol.Time, f *flow) {
	f.acks.from = nil
	if f != m.own.flow {
		return
	}
	m.own.incomplete = nil
	if f.acks.acked < f.acks.wanted {
		m.poll(now)
	}
}
