package relay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// A member that misses messages asks a delegate of its own zone for them, and a process
// that has joined asks for everything: the positions of all origins, and the end of the
// log. Both are answered with a list of frames.

// Most bytes of messages in a reply.
const (
	maxFetched = 256 << 10
	maxTable   = 1 << 20
)

// errJustJoined is the answer of a member that waits for a table itself.
var errJustJoined = errors.New("fleet: this member has joined its zone just now")

// maxFetches is how many origins are asked for at a time.
const maxFetches = 16

// giveUp is for how many times Stall a lead waits for a message that its own zone or one
// that is gone should have, before it tells its zone that the message is lost. If another
// zone has it, that one has shipped it long before.
const giveUp = 8

// fetch asks for what is missing for long.
func (m *Machine) fetch(now Time) {
	if len(m.gaps) == 0 {
		return
	}
	others := slices.DeleteFunc(slices.Clone(m.siblings), func(s Sibling) bool { return s.Rank == m.rank })
	fetches := 0
	for _, o := range slices.SortedFunc(maps.Keys(m.gaps), compareOrigins) {
		s := m.gaps[o]
		if now < s.gap+m.config.GapDelay || fetches == maxFetches {
			continue
		}
		if m.Lead() && m.ships(o) && len(s.held) > 0 && now >= s.stuck+giveUp*m.config.Stall {
			f := &frame{kind: kindLost, origin: o, seq: slices.Min(slices.Collect(maps.Keys(s.held))) - 1}
			m.cast(f)
			m.skip(now, s, f.seq)
			continue
		}
		s.gap = now
		if fetches++; len(others) == 0 {
			continue
		}
		f := frame{kind: kindFetch, origin: o, seq: s.next}
		m.actions = append(m.actions, Fetch{others[m.asked%len(others)].Rank, f.append(nil)})
		m.asked++
	}
}

// TableRequest is the request of a process that has joined, for Serve.
func TableRequest() []byte { return (&frame{kind: kindTable}).append(nil) }

// Serve answers the request of a member of this zone.
func (m *Machine) Serve(b []byte) ([]byte, error) {
	f, err := decode(b)
	switch {
	case err != nil:
		return nil, err
	case !m.ready:
		return nil, errJustJoined
	case f.kind == kindTable:
		return m.table(), nil
	case f.kind == kindFetch:
		return m.fetched(f), nil
	}
	return nil, ErrFrame
}

// fetched replies with the messages of an origin from a position on. A member that does
// not know where the origin's messages begin is told that they begin here.
func (m *Machine) fetched(f *frame) (reply []byte) {
	s := m.streams[f.origin]
	if s == nil || s.next <= max(f.seq, 1) {
		return nil
	}
	first := max(f.seq, s.first)
	switch {
	case f.seq == 0:
		reply = appendFrame(reply, &frame{kind: kindBase, zone: s.origin.Zone, positions: []position{{Origin: s.origin, Seq: s.first - 1}}})
	case f.seq < s.first:
		reply = appendFrame(reply, &frame{kind: kindLost, origin: s.origin, seq: s.first - 1})
	}
	for seq := first; seq < s.next && len(reply) < maxFetched; seq++ {
		reply = appendFrame(reply, &frame{kind: kindData, origin: s.origin, seq: seq, data: s.log[seq-s.first].data})
	}
	return reply
}

// Fetched takes in a reply to a Fetch.
func (m *Machine) Fetched(now Time, reply []byte) error {
	frames, err := splitFrames(reply)
	if err != nil {
		return err
	}
	for _, f := range frames {
		m.handleZone(now, -1, f)
	}
	m.step(now)
	return nil
}

// table is all that a process needs which has joined.
func (m *Machine) table() []byte {
	head := &frame{kind: kindTable, zone: m.self.Zone, zones: m.bases(), born: m.born}
	for _, s := range m.sorted {
		if s.next > 0 {
			head.positions = append(head.positions, position{s.origin, s.position(), s.acked})
		}
	}
	from, bytes := len(m.kept), 0
	for from > 0 && bytes < maxTable {
		from--
		s := m.kept[from]
		bytes += len(s.log[len(s.log)-1].data) + entryOverhead // about: its messages have different lengths
	}
	skipped := make(map[*stream]int)
	for _, s := range m.kept[:from] {
		skipped[s]++
	}
	reply := appendFrame(nil, head)
	for _, s := range m.kept[from:] {
		i := skipped[s]
		skipped[s]++
		reply = appendFrame(reply, &frame{kind: kindData, origin: s.origin, seq: s.first + uint64(i), data: s.log[i].data})
	}
	return appendFrame(reply, &frame{kind: kindSummary, summaries: m.Summaries()})
}

// Join takes in the table of another member. What has arrived before is handled now.
func (m *Machine) Join(now Time, table []byte) error {
	frames, err := splitFrames(table)
	if err != nil || len(frames) == 0 || frames[0].kind != kindTable {
		return cmp.Or(err, ErrFrame)
	}
	m.setBorn(frames[0].born)
	for _, z := range frames[0].zones {
		m.based[z] = true
	}
	for _, p := range frames[0].positions {
		s := m.stream(now, p.Origin)
		s.next, s.first, s.acked, s.seen = p.Seq+1, p.Seq+1, p.Acked, p.Seq
	}
	for _, f := range frames[1:] {
		switch f.kind {
		case kindData:
			s := m.stream(now, f.origin)
			s.next = f.seq
			m.keep(s, f.data)
			s.next++
		case kindSummary:
			m.takeSummaries(now, f.summaries)
		}
	}
	m.begin(now)
	return nil
}

func appendFrame(b []byte, f *frame) []byte {
	one := f.append(nil)
	return append(binary.AppendUvarint(b, uint64(len(one))), one...)
}

func splitFrames(b []byte) (frames []*frame, err error) {
	d := &decoder{b: b}
	for len(d.b) > 0 {
		f, err := decode(d.bytes(len(d.b)))
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	return frames, d.err
}
