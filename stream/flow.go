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
	// lost is the number after the first segment that was given up; 0: none was.
	lost uint64
	// cut is where the view that is about to end ends; 0: nowhere yet. What is
	// before is taken, room or not: all wait for it.
	cut uint64
	// ahead are segments that came before their turn.
	ahead      map[uint64]segment
	aheadBytes int
	store      store
	room       *room // for the message that comes in
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
	begins bool   // a message begins with it
	batch  bool   // or it is several messages
	left   uint32 // bytes of the message that follow in others
	frame  []byte
	body   []byte // what is behind frame, if it is elsewhere: with the rest of the message
}

// payload is the piece itself.
func (s *segment) payload() []byte {
	if s.body != nil {
		return s.body
	}
	return s.frame[headSizeOf(s.left):]
}

// segmentOf copies a segment out of a frame in lent memory, as the frame that
// passes it on.
func (m *Member) segmentOf(f *flow, fr *frame, number uint64) segment {
	seg := segment{begins: fr.begins, batch: fr.batch, left: fr.left}
	passed := *fr
	passed.kind, passed.first, passed.way, passed.with = data, number, news, false
	switch seg.body = f.house(fr, number); {
	case seg.body != nil:
		passed.segment = nil
		seg.frame = passed.append(m.frames.get(headSizeOf(fr.left)))
	case fr.kind == offer:
		seg.frame = passed.append(m.frames.get(headSizeOf(fr.left) + len(fr.segment)))
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

// store keeps the newest segments for those who ask.
type store struct {
	segments deque[segment] // of numbers low, low+1, …, but for the gaps
	low      uint64
	bytes    int
	gaps     []gap // in order; there is a segment before each
}

// gap are numbers that were given up.
type gap struct{ from, to uint64 }

// skip notes that the numbers that follow those kept are given up.
func (s *store) skip(from, to uint64) {
	switch n := len(s.gaps); {
	case s.segments.len() == 0:
		s.low, s.gaps = to, nil
	case n > 0 && s.gaps[n-1].to == from:
		s.gaps[n-1].to = to
	default:
		s.gaps = append(s.gaps, gap{from, to})
	}
}

// kept returns the first number, from one on, that is neither forgotten nor given
// up.
func (s *store) kept(number uint64) uint64 {
	number = max(number, s.low)
	for _, g := range s.gaps {
		if g.from <= number && number < g.to {
			return g.to
		}
	}
	return number
}

// index returns where a number's segment is.
func (s *store) index(number uint64) (int, bool) {
	if s.kept(number) != number {
		return 0, false
	}
	i := number - s.low
	for _, g := range s.gaps {
		if g.to <= number {
			i -= g.to - g.from
		}
	}
	return int(i), i < uint64(s.segments.len())
}

// add keeps one more segment and forgets the oldest beyond the limit, of those
// before a number.
func (s *store) add(seg *segment, limit int, before uint64) {
	s.segments.push(*seg)
	s.bytes += seg.size()
	for s.bytes > limit && s.low < before {
		oldest := s.segments.pop()
		s.bytes -= oldest.size()
		if s.low++; len(s.gaps) > 0 && s.gaps[0].from == s.low {
			s.low, s.gaps = s.gaps[0].to, s.gaps[1:]
		}
	}
}

// get returns a kept segment.
func (s *store) get(number uint64) (segment, bool) {
	i, ok := s.index(number)
	if !ok {
		return segment{}, false
	}
	return *s.segments.at(i), true
}

// aging reports whether a segment will be forgotten before long: what is kept from
// it on is about three quarters of all that can be.
func (s *store) aging(number uint64, limit int) bool {
	i, ok := s.index(number)
	if !ok {
		return false
	}
	n := s.segments.len()
	return s.bytes/n*(n-i) > limit/4*3
}

// partial is a message whose segments are coming in.
type partial struct {
	parts   [][]byte // those that follow each other in memory are one
	bytes   int
	skipped bool // its beginning was lost, or it is too long: nobody gets it
}

// add takes the next segment; it returns the message when that was its last.
func (p *partial) add(seg *segment, limit int) (message []byte, complete bool) {
	if seg.begins {
		*p = partial{}
		if seg.left == 0 {
			return slices.Clip(seg.payload()), len(seg.payload()) <= limit
		}
	}
	if p.bytes += len(seg.payload()); p.bytes > limit {
		*p = partial{skipped: true}
	}
	if p.skipped {
		return nil, false
	}
	p.join(seg.payload())
	if seg.left > 0 {
		return nil, false
	}
	message = p.parts[0]
	if len(p.parts) > 1 {
		message = bytes.Join(p.parts, nil) // which does not clear it first
	}
	*p = partial{}
	return slices.Clip(message), true
}

// join adds a part, to the last one if it is the memory behind that.
func (p *partial) join(part []byte) {
	if n := len(p.parts); n > 0 && behind(p.parts[n-1], part) {
		p.parts[n-1] = p.parts[n-1][:len(p.parts[n-1])+len(part)]
		return
	}
	p.parts = append(p.parts, part)
}

// behind reports whether b is the memory behind a.
func behind(a, b []byte) bool {
	n := len(a)
	return len(b) > 0 && cap(a)-n >= len(b) && &a[:n+1][n] == &b[0]
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

// lacks reports whether anything before a number was given up.
func (f *flow) lacks(number uint64) bool { return f.lost > 0 && f.lost <= number }

// has reports whether a segment is here already.
func (f *flow) has(number uint64) bool {
	if number < f.next || len(f.ahead) == 0 {
		return number < f.next
	}
	_, ahead := f.ahead[number]
	return ahead
}
