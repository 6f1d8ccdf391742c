package stream

// A program that has lost something learns how many messages. A hole is known by the
// numbers of its segments only, and a long message is several segments, while a batch is
// several messages. So every segment says how many messages of its root begin before it,
// and a member that has trimmed a hole says how many begin before its end.
//
// A notice must not wait for the root's next segment, which may never come. If a member
// cannot know yet how many messages were in a hole, it first tells of one, and of the
// others when the next segment arrives. It never learns how many there were before the
// first segment that it has received of a stream that it joined in its midst.

// count is what a member knows of the number of messages in one flow.
type count struct {
	begun   uint32 // messages that began before flow.delivered, delivered or told lost; it wraps around
	unknown bool   // begun is not known: this member joined in the midst of the stream
	lower   bool   // the last notice told of fewer messages than may be lost
	// end is where the last hole ends, and endMessages how many messages begin before
	// it. If zero, that is not known.
	end         uint64
	endMessages uint32
}

// messagesBefore returns how many messages begin before a segment, or 0 if that is not
// known here.
func (f *flow) messagesBefore(number uint64) uint32 {
	if seg, ok := f.get(number); ok {
		return seg.messages
	}
	switch c := &f.count; {
	case c.end == number:
		return c.endMessages
	case f.delivered == number && !c.unknown && !c.lower:
		return c.begun
	}
	return 0
}

// deliverLoss tells the program of a hole.
func (m *Member) deliverLoss(f *flow, end uint64) {
	c, lost := &f.count, uint32(0)
	if len(f.partial.parts) > 0 {
		lost = 1 // the message that the hole cuts off
	}
	if messages := f.messagesBefore(end); messages > 0 {
		if !c.unknown {
			lost += uint32(max(int32(messages-c.begun), 0))
		}
		c.begun, c.unknown, c.lower = messages, false, false
	} else {
		c.lower = true
	}
	if lost == 0 && !f.partial.skipped {
		lost = 1 // at least
		if c.lower {
			c.begun++
		}
	}
	f.partial, f.delivered = partial{skipped: true}, end
	if lost > 0 {
		m.inbox.pushLoss(f.root, m.view, uint64(lost))
	}
}

// countSegment counts up to the next segment to deliver, and reports lost messages that were
// not reported before.
func (m *Member) countSegment(f *flow, seg *segment) {
	c := &f.count
	if missed := int32(seg.messages - c.begun); missed > 0 && c.lower && !c.unknown {
		m.inbox.pushLoss(f.root, m.view, uint64(missed))
	}
	c.begun, c.unknown, c.lower = seg.messages, false, false
}
