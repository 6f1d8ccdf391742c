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
	told   uint64                   // answered already
	from   map[protocol.Rank]uint64 // what each child has answered
}

// pollAgain is after what time a question is asked again that is not answered.
const (
	pollAgain = 25 * millisecond
	pollMost  = 800 * millisecond
)

// Poll asks everybody for what this member has sent so far. When all have
// answered, Stable has come up to the number it returns.
func (m *Member) Poll(now protocol.Time) uint64 {
	f := m.own.flow
	if f.acks.wanted < f.next {
		f.acks.wanted = f.next
		m.own.pollPause, m.own.lossy = pollAgain, nil
		m.poll(now)
	}
	return f.next
}

// Stable is the number before which everybody in the view has everything of this
// member's stream, as far as it has asked.
func (m *Member) Stable() uint64 { return m.own.flow.acks.told }

// Unanswered are those next below this member who have not answered for
// themselves and those below them.
func (m *Member) Unanswered() []protocol.Rank {
	f := m.own.flow
	return slices.DeleteFunc(slices.Clone(f.children), func(child protocol.Rank) bool { return f.acks.from[child] >= f.acks.wanted })
}

// Lossy are those who have said, since Poll has last asked something new, that they
// have lost a part of it. It is valid until the next call.
func (m *Member) Lossy() []protocol.Rank { return m.own.lossy }

// hearLoss notes that a member has lost something of this one's stream.
func (m *Member) hearLoss(from protocol.Rank) {
	if i, known := slices.BinarySearch(m.own.lossy, from); !known && m.lineup.has(from) {
		m.own.lossy = slices.Insert(m.own.lossy, i, from)
	}
}

// poll asks again, unless everybody has answered.
func (m *Member) poll(now protocol.Time) {
	f := m.own.flow
	m.own.pollDue = protocol.Never
	if m.acknowledge(f); f.acks.told >= f.acks.wanted {
		return
	}
	m.passPoll(f)
	m.own.pollDue = now + m.own.pollPause
	m.own.pollPause = min(2*m.own.pollPause, pollMost)
	m.due = min(m.due, m.own.pollDue)
}

// passPoll asks the children who have not answered.
func (m *Member) passPoll(f *flow) {
	for _, child := range f.children {
		if f.acks.from[child] < f.acks.wanted {
			m.put(child, f, frame{kind: poll, first: f.acks.wanted})
		}
	}
}

// hearPoll takes a question.
func (m *Member) hearPoll(f *flow, from protocol.Rank, fr *frame) {
	a := &f.acks
	a.to = from
	a.wanted = max(a.wanted, fr.first)
	a.told = min(a.told, fr.first-1) // the last answer may have been lost
	if m.acknowledge(f); a.told < a.wanted {
		m.passPoll(f)
	}
	if f.lacks(a.wanted) {
		m.put(f.root, f, frame{kind: gone, first: f.next})
	}
}

// hearAck takes an answer.
func (m *Member) hearAck(f *flow, from protocol.Rank, fr *frame) {
	if f.acks.from == nil {
		f.acks.from = make(map[protocol.Rank]uint64)
	}
	f.acks.from[from] = max(f.acks.from[from], fr.first)
	m.acknowledge(f)
}

// acknowledge answers if there is a question, and everything is here and below.
func (m *Member) acknowledge(f *flow) {
	a := &f.acks
	if a.told >= a.wanted || f.next < a.wanted || f.lacks(a.wanted) {
		return
	}
	for _, child := range f.children {
		if a.from[child] < a.wanted {
			return
		}
	}
	a.told = a.wanted
	if f != m.own.flow {
		m.put(a.to, f, frame{kind: ack, first: a.wanted})
	}
}

// reAcknowledge begins anew among those who are there now: what those below have
// answered was for others.
func (m *Member) reAcknowledge(now protocol.Time, f *flow) {
	f.acks.from = nil
	if f != m.own.flow {
		return
	}
	m.own.lossy = nil
	if f.acks.told < f.acks.wanted {
		m.poll(now)
	}
}
