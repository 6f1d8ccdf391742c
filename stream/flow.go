package stream

import (
	"bytes"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// flow is what a member knows of one root's stream.
type flow struct {
	root        protocol.Rank
	incarnation uint64
	// next is the first segment not yet here: all before it are. wanted is the
	// number after the last one known to exist.
	next, wanted uint64
	// base is where the present view has begun; delivered is the first segment
	// that has not been delivered: before next only while frozen.
	base, delivered uint64
	over            bool // its root is not in the view any more
	// cut is where the view that is about to end ends; 0: nowhere yet. What is
	// before is taken, room or not: all wait for it.
	cut uint64
	// ahead are segments that came before their turn.
	ahead      map[uint64]segment
	aheadBytes int
	store      store
	partial    partial
	fedAt      protocol.Time   // when the tree last brought the next segment
	passed     uint64          // the number after the last segment passed on
	parent     protocol.Rank   // in the tree
	children   []protocol.Rank // in the order in which they are sent to
	foster     foster
	acks       acks
	correction correction
	asking     asking
	reminder   reminder
}

// segment is a piece of a message, kept as the frame in which it travels along
// the tree: it is passed on as it came.
type segment struct {
	begins bool // a message begins with it
	more   bool // and goes on in the next one
	batch  bool // or it is several messages
	frame  []byte
}

// payload is the piece itself.
func (s *segment) payload() []byte { return s.frame[headSize:] }

// segmentOf copies a segment out of a frame in lent memory, as the frame that
// passes it on.
func (m *Member) segmentOf(fr *frame, number uint64) segment {
	if fr.kind == offer {
		passed := *fr
		passed.kind, passed.first, passed.way, passed.with = data, number, news, false
		return segment{fr.begins, fr.more, fr.batch, passed.append(m.frames.get(headSize + len(fr.segment)))}
	}
	passed := m.frames.join(fr.encoded, nil)
	passed[0] = byte(data)
	return segment{fr.begins, fr.more, fr.batch, passed}
}

// size is what keeping a segment costs.
func (s *segment) size() int { return len(s.frame) + segmentCost }

// segmentCost is what a segment costs beside its bytes.
const segmentCost = 64

// store keeps the newest segments for those who ask.
type store struct {
	segments deque[segment] // of numbers low, low+1, …
	low      uint64
	bytes    int
}

// add keeps one more segment and forgets the oldest beyond the limit, of those
// before a number.
func (s *store) add(seg *segment, limit int, before uint64) {
	s.segments.push(*seg)
	s.bytes += seg.size()
	for s.bytes > limit && s.low < before {
		oldest := s.segments.pop()
		s.bytes -= oldest.size()
		s.low++
	}
}

// get returns a kept segment.
func (s *store) get(number uint64) (segment, bool) {
	if number < s.low || number-s.low >= uint64(s.segments.len()) {
		return segment{}, false
	}
	return *s.segments.at(int(number - s.low)), true
}

// aging reports whether a segment will be forgotten before long: what is kept from
// it on is about three quarters of all that can be.
func (s *store) aging(number uint64, limit int) bool {
	n := uint64(s.segments.len())
	if number < s.low || number-s.low >= n {
		return false
	}
	return uint64(s.bytes)/n*(n-(number-s.low)) > uint64(limit/4*3)
}

// partial is a message whose segments are coming in.
type partial struct {
	parts   [][]byte
	bytes   int
	skipped bool // its beginning was lost, or it is too long: nobody gets it
}

// add takes the next segment; it returns the message when that was its last.
func (p *partial) add(seg *segment, limit int) (message []byte, complete bool) {
	if seg.begins {
		if !seg.more {
			*p = partial{}
			return seg.payload(), len(seg.payload()) <= limit
		}
		*p = partial{}
	}
	if p.bytes += len(seg.payload()); p.bytes > limit {
		*p = partial{skipped: true}
	}
	if p.skipped {
		return nil, false
	}
	p.parts = append(p.parts, seg.payload())
	if seg.more {
		return nil, false
	}
	message = bytes.Join(p.parts, nil) // which does not clear it first
	*p = partial{}
	return message, true
}

// firstAhead is the lowest number that came before its turn.
func (f *flow) firstAhead() uint64 {
	return slices.Min(slices.Collect(maps.Keys(f.ahead)))
}

// get returns a segment that is here.
func (f *flow) get(number uint64) (seg segment, ok bool) {
	if seg, ok = f.store.get(number); !ok {
		seg, ok = f.ahead[number]
	}
	return seg, ok
}

// has reports whether a segment is here already.
func (f *flow) has(number uint64) bool {
	if number < f.next || len(f.ahead) == 0 {
		return number < f.next
	}
	_, ahead := f.ahead[number]
	return ahead
}
