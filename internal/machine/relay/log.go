package relay

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/queue"
)

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
	Header header.Encoded
	Data   []byte
	Lost   uint64
}

// Position is up to where an origin's messages go.
type Position struct {
	Origin Origin
	Seq    uint64
}

// A member keeps the last messages of all origins, in the order of their arrival, and all
// messages of its own zone that another zone lacks. So a message is dropped from the log
// only when all zones have it, or those that lack it were cut off for too long: see away.go.
// What the origins of a zone may have on its way is bounded (Machine.Window), and so is the log.

// journal has the messages of all origins.
type journal struct {
	*core
	streams   map[Origin]*stream
	sorted    []*stream           // streams in the order of their origins
	known     map[string]*stream  // streams by the bytes of their origins in frames
	based     map[string]bool     // zones whose first messages are known
	gaps      map[Origin]*stream  // streams in which something is missing
	forgot    bool                // there were too many origins
	heldBytes int                 // data of messages that wait for those before them
	kept      queue.Queue[record] // the last messages of the log, in the order of their arrival
	keptBytes int                 // cost of all messages of the log
	oldBytes  int                 // cost of those that are in the log only because a zone lacks them
}

// record is a message of the log.
type record struct {
	stream *stream
	seq    uint64
}

// stream is what a member knows of an origin's messages.
type stream struct {
	origin    Origin
	own       bool   // the origin is of this zone, and of its present life
	next      uint64 // the next message to deliver; 0: not known yet
	first     uint64 // the log has first to next-1
	log       queue.Queue[entry]
	acked     uint64             // position up to which all zones have the messages, says this zone's lead
	old       uint64             // position up to which the log has messages only because a zone lacks them
	forwarded uint64             // first message that was forwarded to this member and not broadcast yet; 0: none
	since     Time               // when that was forwarded
	before    uint64             // position up to which a delegate before this one says that all zones are
	held      map[uint64]arrival // messages beyond next
	seen      uint64             // position of a delegate of this zone
	gap       Time               // when the missing message was missed, or asked for last
	stuck     Time               // since when nothing was delivered although something waits
	lost      uint64             // position up to which another member has nothing any more
	lostAt    Time               // when the messages up to lost are given up
	used      Time               // last use
	marked    position           // position in the last watermark of this member that has the origin
}

// entry is a message of the log. end is the cost of its origin's messages up to it.
type entry struct {
	message
	end uint64
}

// entryOverhead is the size of an entry of the log without its data.
const entryOverhead = 64

// cost is what a message takes in the log, and in windows.
func (m message) cost() int { return len(m.raw) - m.head + entryOverhead }

// arrival is a message that waits for those before it.
type arrival struct {
	message
	inject bool // it came from another zone to this process, which broadcasts it
}

// position is up to where the log reaches.
func (s *stream) position() uint64 { return max(s.next, 1) - 1 }

// bytes returns the cost of the messages after a position up to another one, as far as the
// log has them.
func (s *stream) bytes(after, upTo uint64) int {
	return int(s.end(upTo) - min(s.end(after), s.end(upTo)))
}

func (s *stream) end(seq uint64) uint64 {
	switch {
	case s.log.Len() == 0:
		return 0
	case seq < s.first:
		e := s.at(s.first)
		return e.end - uint64(e.cost())
	}
	return s.at(min(seq, s.position())).end
}

// at returns a message of the log.
func (s *stream) at(seq uint64) *entry { return s.log.At(int(seq - s.first)) }

// stream returns what is known of an origin. If that is nothing, its messages begin with
// the first if this member has a base of its zone, and otherwise where the base says.
func (j *journal) stream(now Time, o Origin) *stream {
	s := j.streams[o]
	if s == nil {
		j.forgetOne()
		s = &stream{origin: o, first: 1, own: o.Zone == j.self.Zone && !j.former(o)}
		if j.based[o.Zone] && !j.forgot {
			s.next = 1
		}
		j.streams[o] = s
		i, _ := slices.BinarySearchFunc(j.sorted, o, compareStream)
		j.sorted = slices.Insert(j.sorted, i, s)
		j.known[string(appendOrigin(nil, o))] = s
	}
	s.used = now
	return s
}

// streamOf returns what is known of the origin of a frame.
func (j *journal) streamOf(now Time, f *frame) *stream {
	if f.stream == nil {
		return j.stream(now, f.origin)
	}
	f.stream.used = now
	return f.stream
}

// wanted reports whether another zone lacks messages.
func (s *stream) wanted() bool { return s.own && s.acked < s.position() }

// forgetOne makes room for another origin, if there are too many: it forgets the one that
// was silent for longest, of those that all zones have the messages of.
func (j *journal) forgetOne() {
	if len(j.streams) < j.config.MaxOrigins {
		return
	}
	oldest := j.sorted[0]
	for _, s := range j.sorted {
		if wanted, before := s.wanted(), oldest.wanted(); before && !wanted || wanted == before && s.used < oldest.used {
			oldest = s
		}
	}
	j.dropAll(oldest)
	for _, a := range oldest.held {
		j.heldBytes -= a.cost()
	}
	j.sweep()
	delete(j.streams, oldest.origin)
	delete(j.known, string(appendOrigin(nil, oldest.origin)))
	delete(j.gaps, oldest.origin)
	j.forgot = true
	j.sorted = slices.DeleteFunc(j.sorted, func(s *stream) bool { return s == oldest })
}

// arrive takes in a message from this zone or, if inject is true, from another one.
func (j *journal) arrive(now Time, s *stream, seq uint64, msg message, inject bool) {
	if s.next == 0 && j.forgot && seq > 0 {
		j.startAt(now, s, seq) // it may have been known before
	}
	switch {
	case seq == 0 || s.next > 0 && seq < s.next:
		return // it was delivered
	case s.held[seq].raw != nil:
		return
	case seq != s.next && j.heldBytes+msg.cost() > j.config.KeepBytes:
		j.missing(now, s)
		return // it is fetched later
	}
	if a := (arrival{msg, inject}); seq == s.next {
		j.take(s, a)
	} else {
		j.hold(s, seq, a)
	}
	j.drain(now, s)
}

// hold keeps a message until those before it are there.
func (j *journal) hold(s *stream, seq uint64, a arrival) {
	if s.held == nil {
		s.held = make(map[uint64]arrival)
	}
	s.held[seq] = a
	j.heldBytes += a.cost()
}

// take delivers the next message of an origin.
func (j *journal) take(s *stream, a arrival) {
	if a.inject {
		j.add(Cast{a.raw})
	}
	if s.origin != j.self || j.config.Echo {
		h, data := a.content()
		j.deliver(Message{Origin: s.origin, Seq: s.next, Header: h, Data: data})
	}
	j.keep(s, a.message)
	s.next++
	s.gap = 0
}

// drain delivers what waits and is the next.
func (j *journal) drain(now Time, s *stream) {
	for a, ok := s.held[s.next]; ok; a, ok = s.held[s.next] {
		delete(s.held, s.next)
		j.heldBytes -= a.cost()
		j.take(s, a)
	}
	if len(s.held) > 0 || s.seen >= max(s.next, 1) {
		j.missing(now, s)
	} else if len(j.gaps) > 0 {
		delete(j.gaps, s.origin)
	}
}

// expect notes that another member has an origin's messages up to a position.
func (j *journal) expect(now Time, s *stream, upTo uint64) {
	s.seen = max(s.seen, upTo)
	if s.seen >= max(s.next, 1) {
		j.missing(now, s)
	}
}

// missing notes that something is missing.
func (j *journal) missing(now Time, s *stream) {
	if s.gap == 0 {
		s.gap, s.stuck = now, now
	}
	j.gaps[s.origin] = s
}

// giveUp notes that another member has nothing any more up to a position. This one may have
// it among what it has not read yet, or gets it from another one, and waits for a while.
func (j *journal) giveUp(now Time, s *stream, upTo uint64, wait Time) {
	if s.next > 0 && s.next <= upTo && s.lost < upTo {
		s.lost, s.lostAt = upTo, now+wait
		j.missing(now, s)
	}
}

// skip gives up messages up to a position, which are lost.
func (j *journal) skip(now Time, s *stream, upTo uint64) {
	if s.next == 0 || s.next > upTo {
		return
	}
	j.dropAll(s)
	j.sweep()
	j.deliver(Message{Origin: s.origin, Seq: upTo + 1, Lost: upTo + 1 - s.next})
	j.startAt(now, s, upTo+1)
}

// startAt has an origin's messages begin with one. Those before it that wait are not needed.
func (j *journal) startAt(now Time, s *stream, first uint64) {
	s.next, s.first = first, first
	for seq, a := range s.held {
		if seq < first {
			j.heldBytes -= a.cost()
			delete(s.held, seq)
		}
	}
	j.drain(now, s)
}

// keep adds the next message to the log.
func (j *journal) keep(s *stream, msg message) {
	var end uint64
	if n := s.log.Len(); n == 0 {
		s.first = s.next
	} else {
		end = s.log.At(n - 1).end
	}
	s.log.Push(entry{msg, end + uint64(msg.cost())})
	j.kept.Push(record{s, s.next})
	j.keptBytes += msg.cost()
	j.trim()
}

// trim drops the oldest messages if the log is too long. Those that another zone lacks are
// old then, and stay until it has them.
func (j *journal) trim() {
	for j.keptBytes-j.oldBytes > j.config.KeepBytes && j.kept.Len() > 1 {
		r := j.kept.Pop()
		switch s := r.stream; {
		case r.seq < s.first: // it was dropped
		case s.own && r.seq > s.acked || s.forwarded > 0 && r.seq >= s.forwarded:
			s.old = r.seq
			j.oldBytes += s.at(r.seq).cost()
		default:
			j.drop(s)
		}
	}
}

// drop drops the first message of an origin's log.
func (j *journal) drop(s *stream) {
	cost := s.at(s.first).cost()
	if s.first <= s.old {
		j.oldBytes -= cost
	}
	j.keptBytes -= cost
	s.first++
	s.log.Discard()
	s.log.Trim(0) // an origin that is silent takes no memory
}

// dropAll drops an origin's log.
func (j *journal) dropAll(s *stream) {
	for s.log.Len() > 0 {
		j.drop(s)
	}
}

// sweep forgets records of messages that were dropped.
func (j *journal) sweep() {
	for range j.kept.Len() {
		if r := j.kept.Pop(); r.seq >= r.stream.first {
			j.kept.Push(r)
		}
	}
}

// acknowledged notes that all zones have an origin's messages up to a position.
func (j *journal) acknowledged(s *stream, upTo uint64) {
	s.acked = max(s.acked, upTo)
	j.release(s)
}

// release drops messages that are in the log only because others lacked them.
func (j *journal) release(s *stream) {
	for s.first <= min(s.old, s.acked) && (s.forwarded == 0 || s.first < s.forwarded) {
		j.drop(s)
	}
}

// newJournal makes the journal of a member.
func newJournal(c Config) *journal {
	return &journal{
		core:    &core{config: c, self: c.Self, roster: roster{index: -1}},
		streams: make(map[Origin]*stream), known: make(map[string]*stream), based: make(map[string]bool),
		gaps: make(map[Origin]*stream),
	}
}

// takeBase takes in where the messages of a zone begin for this one.
func (j *journal) takeBase(now Time, f *frame) {
	if j.based[f.zone] {
		return
	}
	j.based[f.zone] = true
	for _, p := range f.positions {
		if p.Origin.Zone == f.zone {
			if s := j.stream(now, p.Origin); s.next <= 1 {
				j.startAt(now, s, p.Seq+1)
			}
		}
	}
	for _, s := range j.sorted {
		if s.origin.Zone == f.zone {
			s.next = max(s.next, 1)
			j.drain(now, s)
		}
	}
}

// positions returns those of the origins of some zones.
func (j *journal) positions(zones []string) (list []position) {
	for _, s := range j.sorted {
		if s.next > 0 && slices.Contains(zones, s.origin.Zone) {
			list = append(list, position{Origin: s.origin, Seq: s.position(), Acked: s.acked})
		}
	}
	return list
}

// bases returns the zones of which this one has a base.
func (j *journal) bases() []string { return slices.Sorted(maps.Keys(j.based)) }

// shipped returns the zones of which this one ships messages.
func (j *journal) shipped() []string {
	zones := make(map[string]bool)
	for z := range j.based {
		zones[z] = z == j.self.Zone || !j.present(z)
	}
	for _, s := range j.sorted {
		zone := s.origin.Zone
		zones[zone] = zones[zone] || j.based[zone] && j.ships(s.origin)
	}
	return slices.DeleteFunc(j.bases(), func(z string) bool { return !zones[z] })
}
