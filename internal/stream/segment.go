package stream

// segment is a piece of a message, kept as the frame in which it travels along
// the tree: it is passed on as it came.
type segment struct {
	begins    bool   // a message begins with it
	batch     bool   // or it is several messages
	remaining uint32 // bytes of the message that follow in others
	frame     []byte
	body      []byte // what is behind frame, if it is elsewhere: with the rest of the message
}

// payload is the piece itself.
func (s *segment) payload() []byte {
	if s.body != nil {
		return s.body
	}
	return s.frame[headSizeOf(s.remaining):]
}

// segmentOf copies a segment out of a frame in lent memory, as the frame that
// passes it on.
func (m *Member) segmentOf(f *flow, fr *frame, number uint64) segment {
	seg := segment{begins: fr.begins, batch: fr.batch, remaining: fr.remaining}
	forwarded := *fr
	forwarded.kind, forwarded.first, forwarded.direction, forwarded.inline = data, number, undirected, false
	switch seg.body = f.reassemble(fr, number); {
	case seg.body != nil:
		forwarded.segment = nil
		seg.frame = forwarded.append(m.frames.get(headSizeOf(fr.remaining)))
	case fr.kind == offer:
		seg.frame = forwarded.append(m.frames.get(headSizeOf(fr.remaining) + len(fr.segment)))
	default:
		seg.frame = m.frames.join(fr.encoded, nil)
		seg.frame[0] = byte(data)
	}
	return seg
}

// size is what keeping a segment costs.
func (s *segment) size() int { return len(s.frame) + len(s.body) + segmentCost }

// segmentCost is what a segment costs beside its bytes.
const segmentCost = 64
