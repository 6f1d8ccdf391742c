package stream

import "github.com/pleach-go/pleach/internal/base/queue"

// store keeps the newest segments of a stream to answer requests, and trims the oldest.
// In a view, the roots that are active share KeepBytes. Beyond its share of it, a stream's
// segments are kept only as long as some member may not have accepted them, which every
// segment says. So a member keeps no more of many roots than of one, apart from what is in
// flight, and never trims what another may still lack.
//
// The roots of a static group send without the credits of a member that is cut off (see
// addBelow), so nothing says what that member lacks. KeepBytes of each root are kept for it.
type store struct {
	segments queue.Queue[segment] // of numbers low, low+1, …, except for the gaps
	low      uint64
	bytes    int
	weight   int   // as windows count
	gaps     []gap // in ascending order; there is a segment before each
}

// gap is a range of numbers that were given up.
type gap struct{ from, to uint64 }

// skip records that the numbers behind those kept are given up.
func (s *store) skip(from, to uint64) {
	switch n := len(s.gaps); {
	case s.segments.Len() == 0:
		s.low, s.gaps = to, nil
	case n > 0 && s.gaps[n-1].to == from:
		s.gaps[n-1].to = to
	default:
		s.gaps = append(s.gaps, gap{from, to})
	}
}

// firstKept returns the first number, from one on, that is neither trimmed nor given
// up.
func (s *store) firstKept(number uint64) uint64 {
	number = max(number, s.low)
	for _, g := range s.gaps {
		if g.from <= number && number < g.to {
			return g.to
		}
	}
	return number
}

// index returns the index of a number's segment.
func (s *store) index(number uint64) (int, bool) {
	if s.firstKept(number) != number {
		return 0, false
	}
	i := number - s.low
	for _, g := range s.gaps {
		if g.to <= number {
			i -= g.to - g.from
		}
	}
	return int(i), i < uint64(s.segments.Len())
}

// add keeps one more segment.
func (s *store) add(seg *segment) {
	s.segments.Push(*seg)
	s.bytes += seg.size()
	s.weight += seg.weight()
}

// trimOldest trims the oldest segment, and returns it with its number.
func (s *store) trimOldest() (number uint64, oldest segment) {
	number, oldest = s.low, s.segments.Pop()
	s.bytes -= oldest.size()
	s.weight -= oldest.weight()
	s.low++
	if len(s.gaps) > 0 && s.gaps[0].from == s.low {
		s.low, s.gaps = s.gaps[0].to, s.gaps[1:]
	}
	return number, oldest
}

// get returns a kept segment.
func (s *store) get(number uint64) (segment, bool) {
	i, ok := s.index(number)
	if !ok {
		return segment{}, false
	}
	return *s.segments.At(i), true
}

// weightOf returns the weight of the kept segments of a range of numbers.
func (s *store) weightOf(from, to uint64) (weight int) {
	for ; from < to; from++ {
		if seg, ok := s.get(from); ok {
			weight += seg.weight()
		}
	}
	return weight
}

// keep stores the next segment of a flow, and trims what is kept beyond the limits.
func (m *Member) keep(f *flow, seg *segment) {
	f.store.add(seg)
	f.next++
	if m.static() {
		m.trim(f, m.config.KeepBytes, f.delivered)
		return
	}
	m.trim(f, (holdFactor+1)*m.config.KeepBytes, f.delivered) // a batch may end beyond holdFactor
	m.trim(f, m.divide(m.config.KeepBytes), min(f.delivered, f.credit.accepted))
}

// trim trims the oldest segments of a flow beyond a limit, of those before a number.
func (m *Member) trim(f *flow, limit int, before uint64) {
	for s := &f.store; s.bytes > limit && s.low < before; {
		number, oldest := s.trimOldest()
		m.recycle(number, &oldest)
	}
}
