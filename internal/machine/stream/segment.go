package stream

// segment is a part of a message, or a batch. It is kept as the frame in which it
// travels along the tree, and forwarded as it arrived.
type segment struct {
	begins    bool   // it begins a message
	batch     bool   // it is a batch
	labeled   bool   // the messages that begin in it begin with their label
	traced    bool   // members report its arrival
	remaining uint32 // bytes of the message in the segments that follow
	messages  uint32 // messages of the root that begin before it; it wraps around
	batched   int    // messages in it, if it is a batch
	frame     []byte
	body      []byte // the payload, if it is in a reassembly buffer instead of in frame
	buffer    *reassemblyBuffer
}

// payload returns the segment's bytes.
func (s *segment) payload() []byte {
	if s.body != nil {
		return s.body
	}
	return s.frame[headSizeOf(s.remaining):]
}

// segmentOf copies a segment out of a frame in borrowed memory, and encodes the frame
// that forwards it.
func (m *Member) segmentOf(f *flow, fr *frame, number uint64) segment {
	seg := segment{
		begins: fr.begins, batch: fr.batch, labeled: fr.labeled, traced: fr.traced, remaining: fr.remaining,
		messages: fr.messages, batched: fr.batched,
	}
	forwarded := *fr
	forwarded.kind, forwarded.first, forwarded.direction, forwarded.inline = data, number, undirected, false
	forwarded.aged, forwarded.unaccepted = false, f.unaccepted(number)
	switch seg.body, seg.buffer = m.reassemble(f, fr, number); {
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

// size returns the cost of keeping a segment, in bytes.
func (s *segment) size() int { return len(s.frame) + len(s.body) + segmentCost }

// segmentCost is what a segment costs besides its bytes.
const segmentCost = 64

// weight returns what a segment counts in a window. The messages of a batch are short,
// and handling each costs a member more than its bytes: a window of them must not take
// longer than one of long messages.
func (s *segment) weight() int { return s.size() + s.batched*batchedWeight }

// batchedWeight is what each message of a batch counts besides its bytes.
const batchedWeight = 192
