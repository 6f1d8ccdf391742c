package stream

import (
	"github.com/pleach-go/pleach/protocol"
)

// send is one frame to be sent: that of a segment, shared by all it is sent to, as
// it is but for its kind; or another, encoded for this.
type send struct {
	to        protocol.Rank
	flow      *flow
	kind      kind
	rightward bool // an offer that asks for an answer
	retry     bool // an offer to one who is likely down: it need not go further
	encoded   []byte
	body      []byte // what is behind, if it is elsewhere
}

// pass sends a segment to the children of this member in the root's tree.
func (m *Member) forward(f *flow, number uint64, seg *segment) {
	f.forwarded = max(f.forwarded, number+1)
	for _, child := range f.children {
		m.stats.Relayed++
		m.queueSegment(child, f, data, seg)
	}
	m.feedOrphans(f, number, seg)
}

// put queues a frame about a flow.
func (m *Member) queueFrame(to protocol.Rank, f *flow, fr frame) {
	fr.root, fr.incarnation = f.root, f.incarnation
	m.outbox.Push(send{
		to: to, flow: f, kind: fr.kind, rightward: fr.direction == rightward,
		encoded: fr.append(m.frames.get(requestSize + len(fr.segment))),
	})
}

// putSegment queues a segment.
func (m *Member) queueSegment(to protocol.Rank, f *flow, k kind, seg *segment) {
	m.outbox.Push(send{to: to, flow: f, kind: k, encoded: seg.frame, body: seg.body})
}

// Next returns the next frame to send, a head and a body behind it, valid until the
// next call, or false when there is none for now.
func (m *Member) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	m.tick(now)
	for {
		if m.outbox.Len() == 0 {
			m.emit(now)
		}
		if m.outbox.Len() == 0 {
			return protocol.NoRank, nil, nil, false
		}
		if m.lastSent = m.outbox.Pop(); !m.joinBacklog(m.lastSent) {
			break
		}
	}
	if m.lastSent.kind != repair {
		return m.lastSent.to, m.lastSent.encoded, m.lastSent.body, true
	}
	m.repairHead = append(m.repairHead[:0], m.lastSent.encoded...)
	m.repairHead[0] = byte(repair)
	return m.lastSent.to, m.repairHead, m.lastSent.body, true
}
