package relay

import (
	"cmp"
	"errors"
	"maps"
	"slices"
)

// A member that misses messages asks a delegate of its own zone for them, and a process
// that has joined asks for everything: the positions of all origins, and the end of the
// log. Both are answered with a list of frames.
//
// A process that joins gets what is broadcast in its zone from its first view on. What was
// broadcast before may still wait to be read at the delegate that it asks, and would be in
// neither's positions. So it broadcasts a hello first. A delegate that has read that has read
// everything of the views before, since messages of a view come before those of the next
// (view synchrony), and answers only then.

// Most bytes of messages in a reply.
const (
	maxFetched = 256 << 10
	maxTable   = 1 << 20
)

// errNotYet is the answer of a member that waits for a table itself, or has not read the
// hello of the joiner.
var errNotYet = errors.New("fleet: this member has not read everything yet")

// maxHellos is how many joiners are remembered. Others say hello again.
const maxHellos = 1024

// maxFetches is how many origins are asked for at a time.
const maxFetches = 16

// giveUpAfter is for how many times Stall a lead waits for a message that its own zone or one
// that is gone should have, before it tells its zone that the message is lost. If another
// zone has it, that one has shipped it long before.
const giveUpAfter = 8

// repair is the part of a member that misses messages.
type repair struct {
	*journal
	asked  int             // counts requests, so that delegates are asked in turn
	hellos map[Origin]bool // joiners whose hello was read
}

func (r *repair) deadline(d *deadline) {
	for _, s := range r.gaps {
		d.at(s.gap + r.config.GapDelay)
	}
}

// fetch asks for what is missing for long. It returns the streams that advance because
// messages are given up.
func (r *repair) fetch(now Time) (gotOn []*stream) {
	if len(r.gaps) == 0 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(r.siblings), func(s Sibling) bool { return s.Rank == r.rank })
	fetches := 0
	for _, o := range slices.SortedFunc(maps.Keys(r.gaps), compareOrigins) {
		s := r.gaps[o]
		if now < s.gap+r.config.GapDelay || fetches == maxFetches {
			continue
		}
		if upTo := r.hopeless(now, s); upTo >= max(s.next, 1) {
			r.cast(&frame{kind: kindLost, origin: o, seq: upTo})
			r.skip(now, s, upTo)
			gotOn = append(gotOn, s)
			continue
		}
		s.gap = now
		fetches++
		if len(others) == 0 {
			continue
		}
		f := frame{kind: kindFetch, origin: o, seq: s.next}
		r.add(Fetch{others[r.asked%len(others)].Rank, f.append(nil)})
		r.asked++
	}
	return gotOn
}

// hopeless returns the position up to which an origin's messages are missing for good, or 0:
// other members have lost them, and they have not come since then; or nobody has shipped
// them for long, and this member would, or is the only one of its zone that knows of more.
func (r *repair) hopeless(now Time, s *stream) uint64 {
	switch {
	case s.next == 0:
	case s.lost >= s.next && now >= max(s.lostAt, s.stuck+r.config.Stall/2):
		return s.lost
	case (r.active || s.injects()) && r.ships(s.origin) && now >= s.stuck+giveUpAfter*r.config.Stall:
		if len(s.held) > 0 {
			return slices.Min(slices.Collect(maps.Keys(s.held))) - 1
		}
		return s.seen
	}
	return 0
}

// injects reports whether a message waits here that the zone has not seen yet.
func (s *stream) injects() bool {
	for _, a := range s.held {
		if a.inject {
			return true
		}
	}
	return false
}

// Hello is what a process that has joined broadcasts in its zone, now and then, until it has
// an answer to its TableRequest.
func (r *repair) Hello() []byte { return (&frame{kind: kindHello, origin: r.config.Self}).encode() }

// TableRequest is the request of a process that has joined, for Serve.
func (r *repair) TableRequest() []byte {
	return (&frame{kind: kindTable, positions: []position{{Origin: r.config.Self}}}).append(nil)
}

// handleHello takes in that a process has joined.
func (r *repair) handleHello(f *frame) {
	if len(r.hellos) >= maxHellos {
		clear(r.hellos)
	}
	r.hellos[f.origin] = true
}

// Serve answers the request of a member of this zone.
func (m *Machine) Serve(b []byte) ([]byte, error) {
	f, err := decode(b)
	switch {
	case err != nil:
		return nil, err
	case !m.ready:
		return nil, errNotYet
	case f.kind == kindTable && len(f.positions) == 1 && m.hellos[f.positions[0].Origin]:
		return m.table(), nil
	case f.kind == kindTable:
		return nil, errNotYet
	case f.kind == kindFetch:
		return m.fetched(f), nil
	}
	return nil, ErrFrame
}

// fetched replies with the messages of an origin from a position on. To a member that does
// not know where the origin's messages begin, the reply says that they begin here.
func (m *Machine) fetched(f *frame) (reply []byte) {
	s := m.streams[f.origin]
	if s == nil || s.next <= max(f.seq, 1) {
		return nil
	}
	first := max(f.seq, s.first)
	switch {
	case f.seq == 0:
		reply = appendFrame(reply, &frame{
			kind: kindBase, zone: s.origin.Zone,
			positions: []position{{Origin: s.origin, Seq: s.first - 1}},
		})
	case f.seq < s.first:
		reply = appendFrame(reply, &frame{kind: kindLost, origin: s.origin, seq: s.first - 1})
	}
	for seq := first; seq < s.next && len(reply) < maxFetched; seq++ {
		reply = append(reply, s.at(seq).raw...)
	}
	return reply
}

// Fetched takes in a reply to a Fetch. If it has brought something, and more is missing, this
// member asks on at once.
func (m *Machine) Fetched(now Time, reply []byte) error {
	frames, err := splitFrames(reply)
	if err != nil {
		return err
	}
	for _, f := range frames {
		if f.kind == kindLost { // the other member keeps no more than this one
			m.giveUp(now, m.stream(now, f.origin), f.seq, giveUpAfter*m.config.Stall)
			continue
		}
		m.handleZone(now, -1, f)
		if s := m.gaps[f.origin]; s != nil && f.kind == kindData {
			s.gap = now - m.config.GapDelay
		}
	}
	m.step(now)
	return nil
}

// table returns all that a process needs which has joined: the positions of all origins, the
// zones that are covered, the end of the log, and what other zones lack.
func (m *Machine) table() []byte {
	head := &frame{kind: kindTable, zone: m.self.Zone, zones: m.bases(), born: m.born}
	for _, s := range m.sorted {
		if s.next > 0 {
			head.positions = append(head.positions, position{s.origin, s.position(), s.acked})
		}
	}
	first := make(map[*stream]uint64) // the first message of each that is in the reply
	for i, bytes := m.kept.Len()-1, 0; i >= 0 && bytes < maxTable; i-- {
		if r := m.kept.At(i); r.seq >= r.stream.first {
			bytes += r.stream.at(r.seq).cost()
			first[r.stream] = r.seq
		}
	}
	reply := appendFrame(appendFrame(nil, head), m.emptyWatermark())
	for _, s := range m.sorted {
		from, ok := first[s]
		if s.wanted() {
			from, ok = min(cmp.Or(from, s.next), max(s.acked+1, s.first)), true
		}
		for seq := from; ok && seq < s.next; seq++ {
			reply = append(reply, s.at(seq).raw...)
		}
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
		m.before = append(m.before, Position{p.Origin, p.Seq})
	}
	for _, f := range frames[1:] {
		switch f.kind {
		case kindData:
			s := m.stream(now, f.origin)
			s.next = f.seq
			m.keep(s, f.message())
			s.next++
		case kindWatermark:
			m.noteCovered(f.zones, true)
		case kindSummary:
			m.takeSummaries(now, f.summaries)
		}
	}
	m.begin(now)
	return nil
}
