package relay

import "slices"

// Origin is a process that broadcasts. Incarnation tells its starts apart.
type Origin struct {
	Zone, ID    string
	Incarnation uint64
}

// Message is a message of an origin or, if Lost is not 0, a notice that so many of its
// messages before Seq are lost.
type Message struct {
	Origin Origin
	Seq    uint64
	Data   []byte
	Lost   uint64
}

// stream is what a member knows of an origin's messages.
type stream struct {
	origin Origin
	next   uint64 // the next to deliver; 0: not known yet
	first  uint64 // the log has first to next-1
	log    []entry
	acked  uint64             // all zones have those up to it, says the lead of the origin's zone
	before uint64             // the same, said by a delegate before this one
	held   map[uint64]arrival // those beyond next
	seen   uint64             // a delegate of this zone has those up to it
	gap    Time               // since when something is missing, or was asked for last
	stuck  Time               // since when nothing was delivered although something waits
	used   Time               // when it was used last
	marked position           // in the last watermark of this member that has the origin
}

// entry is a message of the log. end counts the bytes of its origin up to it.
type entry struct {
	data []byte
	end  uint64
}

// arrival is a message that waits for those before it.
type arrival struct {
	data   []byte
	inject bool // it came from another zone to this process, which broadcasts it
}

// position is up to where the log reaches.
func (s *stream) position() uint64 { return max(s.next, 1) - 1 }

// bytes counts those of the messages after a position up to another one, as far as the
// log has them.
func (s *stream) bytes(after, upTo uint64) int {
	return int(s.end(upTo) - min(s.end(after), s.end(upTo)))
}

func (s *stream) end(seq uint64) uint64 {
	switch {
	case len(s.log) == 0:
		return 0
	case seq < s.first:
		return s.log[0].end - uint64(len(s.log[0].data))
	}
	return s.log[min(seq, s.position())-s.first].end
}

// stream returns what is known of an origin. If that is nothing, its messages begin with
// the first if this member has a base of its zone, and otherwise where the base says.
func (m *Machine) stream(now Time, o Origin) *stream {
	s := m.streams[o]
	if s == nil {
		m.forgetOne()
		s = &stream{origin: o, first: 1}
		if m.based[o.Zone] && !m.forgot {
			s.next = 1
		}
		m.streams[o] = s
		i, _ := slices.BinarySearchFunc(m.sorted, o, compareStream)
		m.sorted = slices.Insert(m.sorted, i, s)
		m.known[string(appendOrigin(nil, o))] = s
	}
	s.used = now
	return s
}

// streamOf returns what is known of the origin of a frame.
func (m *Machine) streamOf(now Time, f *frame) *stream {
	if f.stream == nil {
		return m.stream(now, f.origin)
	}
	f.stream.used = now
	return f.stream
}

// forgetOne makes room for another origin, if there are too many: it forgets the one that
// was silent for longest.
func (m *Machine) forgetOne() {
	if len(m.streams) < m.config.MaxOrigins {
		return
	}
	var oldest *stream
	for _, s := range m.sorted {
		if oldest == nil || s.used < oldest.used {
			oldest = s
		}
	}
	for range oldest.log {
		m.drop(oldest)
	}
	for _, a := range oldest.held {
		m.heldBytes -= len(a.data)
	}
	delete(m.streams, oldest.origin)
	delete(m.known, string(appendOrigin(nil, oldest.origin)))
	delete(m.gaps, oldest.origin)
	m.forgot = true
	m.sorted = slices.DeleteFunc(m.sorted, func(s *stream) bool { return s == oldest })
}

// arrive takes in a message from this zone or, if inject is true, from another one.
func (m *Machine) arrive(now Time, s *stream, seq uint64, data []byte, inject bool) {
	if s.next == 0 && m.forgot {
		s.next, s.first = seq, seq // it may have been known before
	}
	switch {
	case seq == 0 || s.next > 0 && seq < s.next:
		return // it was delivered
	case s.held[seq].data != nil:
		return
	case seq != s.next && m.heldBytes+len(data) > m.config.KeepBytes:
		m.missing(now, s)
		return // it is fetched later
	}
	if data == nil {
		data = []byte{}
	}
	if a := (arrival{data, inject}); seq == s.next {
		m.take(s, a)
	} else {
		m.hold(s, seq, a)
	}
	m.drain(now, s)
}

// hold keeps a message until those before it are there.
func (m *Machine) hold(s *stream, seq uint64, a arrival) {
	if s.held == nil {
		s.held = make(map[uint64]arrival)
	}
	s.held[seq] = a
	m.heldBytes += len(a.data)
}

// take delivers the next message of an origin.
func (m *Machine) take(s *stream, a arrival) {
	if a.inject {
		m.cast(&frame{kind: kindData, origin: s.origin, seq: s.next, data: a.data})
	}
	if s.origin != m.self {
		m.actions = append(m.actions, Deliver{Message{Origin: s.origin, Seq: s.next, Data: a.data}})
	}
	m.keep(s, a.data)
	s.next++
	s.gap = 0
}

// drain delivers what waits and is the next.
func (m *Machine) drain(now Time, s *stream) {
	for a, ok := s.held[s.next]; ok; a, ok = s.held[s.next] {
		delete(s.held, s.next)
		m.heldBytes -= len(a.data)
		m.take(s, a)
	}
	if len(s.held) > 0 || s.seen >= max(s.next, 1) {
		m.missing(now, s)
	} else if len(m.gaps) > 0 {
		delete(m.gaps, s.origin)
	}
}

// missing notes that something is missing.
func (m *Machine) missing(now Time, s *stream) {
	if s.gap == 0 {
		s.gap, s.stuck = now, now
	}
	m.gaps[s.origin] = s
}

// skip gives up messages up to a position, which are lost.
func (m *Machine) skip(now Time, s *stream, upTo uint64) {
	if s.next == 0 || s.next > upTo {
		return
	}
	for range s.log {
		m.drop(s)
	}
	m.actions = append(m.actions, Deliver{Message{Origin: s.origin, Seq: upTo + 1, Lost: upTo + 1 - s.next}})
	for seq, a := range s.held {
		if seq <= upTo {
			m.heldBytes -= len(a.data)
			delete(s.held, seq)
		}
	}
	s.next, s.first = upTo+1, upTo+1
	m.drain(now, s)
}

// keep adds the next message to the log, and drops the oldest ones of all origins if the
// log is too long.
func (m *Machine) keep(s *stream, data []byte) {
	if len(s.log) == 0 {
		s.first = s.next
	}
	var end uint64
	if n := len(s.log); n > 0 {
		end = s.log[n-1].end
	}
	s.log = append(s.log, entry{data, end + uint64(len(data))})
	m.kept = append(m.kept, s)
	m.keptBytes += len(data) + entryOverhead
	for m.keptBytes > m.config.KeepBytes && len(m.kept) > 1 {
		m.drop(m.kept[0])
	}
}

// entryOverhead is what an entry of the log takes beside its data.
const entryOverhead = 64

// drop drops the first message of an origin's log. The log of all is in the order of
// arrival, so that is its first in kept, too.
func (m *Machine) drop(s *stream) {
	m.keptBytes -= len(s.log[0].data) + entryOverhead
	s.log[0].data = nil
	s.log = s.log[1:]
	s.first++
	for i, k := range m.kept {
		if k == s {
			copy(m.kept[1:i+1], m.kept[:i]) // usually i is 0
			m.kept[0] = nil
			m.kept = m.kept[1:]
			return
		}
	}
}
