package stream

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Receiving: a frame is parsed and handled by its kind; a segment is forwarded, kept
// and delivered.

// Receive handles a frame from a peer. It does not retain b. It returns an error that
// wraps [ErrFrame] if the frame is malformed, and ignores the frame then.
func (m *Member) Receive(now protocol.Time, from protocol.Rank, b []byte) error {
	fr, err := parse(b)
	if err != nil {
		return fmt.Errorf("from rank %d: %w", from, err)
	}
	m.receive(now, from, &fr)
	return nil
}

func (m *Member) receive(now protocol.Time, from protocol.Rank, fr *frame) {
	f := m.flowOfFrame(fr)
	if f == nil {
		return
	}
	switch fr.kind {
	case data:
		m.receiveSegment(now, f, from, fr.first, fr, fromTree)
	case repair:
		m.receiveSegment(now, f, from, fr.first, fr, fromPull)
		m.requestMore(now, f)
	case offer:
		m.handleOffer(now, f, from, fr)
	case request:
		m.handleRequest(f, from, fr)
	case trimmed:
		m.handleTrimmed(now, f, from, fr)
	case adopt:
		if m.roster.has(from) {
			f.adopt(from, fr.first)
		}
	case poll, ack:
		m.receiveReceipt(now, f, from, fr)
	case grantCredit:
		m.handleCredit(now, f, from, fr)
	case creditPoll:
		m.handleCreditPoll(now, f, from, fr)
	}
}

// receiveReceipt handles a poll or an acknowledgment. One about what programs have processed
// counts among the members of one view only.
func (m *Member) receiveReceipt(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	switch {
	case !fr.processed && fr.kind == poll:
		m.handlePoll(now, f, from, fr)
	case fr.view != m.view:
	case !fr.processed:
		m.handleAck(now, f, from, fr)
	case fr.kind == poll:
		m.handleProcessedPoll(f, from, fr)
	default:
		m.handleProcessedAck(f, from, fr)
	}
}

// origin is how a segment has arrived.
type origin uint8

const (
	fromTree  origin = iota // from the parent, or a foster parent
	fromOffer               // inline in an offer
	fromPull                // as a repair
)

// receiveSegment receives a segment. One that arrives along the tree, or by correction
// before the tree, is forwarded to the children. One that was pulled is not: the tree
// may still bring it, and the children have ring neighbors of their own to pull from.
func (m *Member) receiveSegment(now protocol.Time, f *flow, from protocol.Rank, number uint64, fr *frame, via origin) {
	tree, forward := via == fromTree, via != fromPull
	m.setActive(now, f)
	f.credit.accepted = max(f.credit.accepted, number-min(uint64(fr.unaccepted), number))
	if tree {
		f.credit.to = from
	}
	if tree && from == f.parent {
		m.measureTree(now, f, number)
	}
	if f.has(number) {
		m.handleDuplicate(now, f, from, number, tree)
		return
	}
	if via == fromPull && number < f.cut {
		m.repairedAt = now
	}
	if fr.traced {
		m.noteArrival(now, f, from, number, via)
	}
	seg := m.segmentOf(f, fr, number)
	m.updateFoster(now, f, from, number, tree)
	if forward {
		m.forward(f, number, &seg)
	}
	f.wanted = max(f.wanted, number+1)
	if m.refuses(f, number) {
		m.stats.Refused++
		m.schedulePull(now, f, from, false)
		m.grant(now, f, creditBytes)
		return
	}
	if number == f.next {
		if tree {
			f.fedAt = now
		}
		m.accept(f, &seg)
	} else {
		f.ahead[number] = seg
		f.aheadBytes += seg.size()
	}
	m.advance(f)
	if f.next == number+1 {
		f.arrived = arrival{f.next, now}
	}
	if f.next > number {
		m.scheduleCorrection(now, f)
		m.armTailProbe(now, f)
		m.acknowledge(f)
		m.acknowledgeProcessed(f)
		m.grant(now, f, creditBytes)
	}
	if f.next < f.wanted {
		m.schedulePull(now, f, from, false)
	}
}

// refuses reports whether there is no room for a segment, which is pulled later then.
func (m *Member) refuses(f *flow, number uint64) bool {
	full := number >= f.cut && m.inboxOverflows()
	return full || number != f.next && f.aheadBytes > m.config.KeepBytes
}

// handleDuplicate handles a segment that is here already.
func (m *Member) handleDuplicate(now protocol.Time, f *flow, from protocol.Rank, number uint64, tree bool) {
	m.stats.Duplicates++
	if !tree || from != f.parent {
		return
	}
	m.endAdoption(f) // the tree still works, only later than others
	if seg, ok := f.get(number); ok && number >= f.forwarded {
		m.forward(f, number, &seg) // it was pulled too early, and not forwarded
	}
}

// advance accepts the segments ahead that follow without a hole.
func (m *Member) advance(f *flow) {
	for seg, ok := f.ahead[f.next]; ok; seg, ok = f.ahead[f.next] {
		delete(f.ahead, f.next)
		f.aheadBytes -= seg.size()
		m.accept(f, &seg)
	}
}

// accept keeps the next segment, and delivers it unless the member is frozen.
func (m *Member) accept(f *flow, seg *segment) {
	m.keep(f, seg)
	if m.frozen {
		m.heldBytes += seg.size()
		return
	}
	m.deliver(f, f.next)
}
