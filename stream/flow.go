package stream

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// flow is what a member knows of one root's stream.
type flow struct {
	root        protocol.Rank
	incarnation uint64
	// next is the first segment not yet here: all before it are. wanted is the
	// number after the last one known to exist.
	next, wanted uint64
	// ahead are segments that came before their turn.
	ahead      map[uint64]segment
	aheadBytes int
	store      store
	partial    partial
	relay      *broadcast.Process // finds the children; used anew for each segment
	parent     protocol.Rank      // in the tree
	foster     foster
	correction correction
	asking     asking
	reminder   reminder
}

// segment is a piece of a message.
type segment struct {
	begins  bool // a message begins with it
	more    bool // and goes on in the next one
	payload []byte
}

// size is what keeping a segment costs.
func (s *segment) size() int { return len(s.payload) + 64 }

// store keeps the newest segments for those who ask.
type store struct {
	segments []segment // of numbers low, low+1, …
	low      uint64
	bytes    int
}

// add keeps one more segment and forgets the oldest beyond the limit.
func (s *store) add(seg segment, limit int) {
	s.segments = append(s.segments, seg)
	s.bytes += seg.size()
	for s.bytes > limit && len(s.segments) > 1 {
		s.bytes -= s.segments[0].size()
		s.segments[0] = segment{}
		s.segments = s.segments[1:]
		s.low++
	}
}

// get returns a kept segment.
func (s *store) get(number uint64) (segment, bool) {
	if number < s.low || number-s.low >= uint64(len(s.segments)) {
		return segment{}, false
	}
	return s.segments[number-s.low], true
}

// partial is a message whose segments are coming in.
type partial struct {
	data    []byte
	skipped bool // its beginning was lost, or it is too long: nobody gets it
}

// add takes the next segment; it returns the message when that was its last.
func (p *partial) add(seg segment, limit int) (message []byte, complete bool) {
	if seg.begins {
		*p = partial{}
	}
	if len(p.data)+len(seg.payload) > limit {
		*p = partial{skipped: true}
	}
	switch {
	case p.skipped:
		return nil, false
	case seg.more:
		p.data = append(p.data, seg.payload...)
		return nil, false
	case p.data == nil:
		return seg.payload, true
	default:
		message = append(p.data, seg.payload...)
		p.data = nil
		return message, true
	}
}

// firstAhead is the lowest number that came before its turn.
func (f *flow) firstAhead() uint64 {
	return slices.Min(slices.Collect(maps.Keys(f.ahead)))
}

// has reports whether a segment is here already.
func (f *flow) has(number uint64) bool {
	_, ahead := f.ahead[number]
	return number < f.next || ahead
}
