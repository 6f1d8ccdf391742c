package stream

import (
	"github.com/pleach-go/pleach/protocol"
)

// Sending: frames wait in the outbox until the driver takes them.

// send is one frame to send. The frame of a segment is shared by all its receivers, and
// differs only in its kind. Any other is encoded for its receiver.
type send struct {
	to        protocol.Rank
	flow      *flow
	kind      kind
	rightward bool // an offer that asks for an answer
	retry     bool // an offer to a neighbor that is probably down: it goes no further
	encoded   []byte
	body      []byte // bytes that follow, if they are elsewhere
	buffer    *reassemblyBuffer
}

// forward sends a segment to this member's children in the root's tree, and to orphans.
func (m *Member) forward(f *flow, number uint64, seg *segment) {
	if number >= m.shareEnd(f) {
		return // once the view is installed, or will not be
	}
	f.forwarded = max(f.forwarded, number+1)
	for _, child := range f.children {
		m.stats.Relayed++
		m.queueSegment(child, f, data, seg)
	}
	m.feedOrphans(f, number, seg)
}

// queueFrame queues a frame about a flow.
func (m *Member) queueFrame(to protocol.Rank, f *flow, fr frame) {
	fr.root, fr.incarnation, fr.view = f.root, f.incarnation, m.view
	m.outbox.Push(send{
		to: to, flow: f, kind: fr.kind, rightward: fr.direction == rightward,
		encoded: fr.append(m.frames.get(requestSize + len(fr.segment))),
	})
}

// queueSegment queues a segment.
func (m *Member) queueSegment(to protocol.Rank, f *flow, k kind, seg *segment) {
	m.outbox.Push(send{to: to, flow: f, kind: k, encoded: seg.frame, body: seg.body, buffer: seg.buffer})
}

// Next returns the next frame to send, as a head and the body behind it, valid until
// the next call. It returns false if there is none now.
func (m *Member) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	m.tick(now)
	m.timeAccepted(now)
	for {
		for m.outbox.Len() == 0 {
			if !m.emit(now) { // one that emits may still send nothing: it feeds no other member
				return protocol.NoRank, nil, nil, false
			}
		}
		m.lastSent = m.outbox.Pop()
		if !m.joinBacklog(m.lastSent) {
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
