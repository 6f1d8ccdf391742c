package stream

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// correction mends a burst: everything of a root that is here when it begins.
// What comes meanwhile is for the next one, so at high rates one correction
// mends many messages.
type correction struct {
	process *broadcast.Process // delayed correction, while it runs
	plan    *broadcast.Plan    // that process was made by
	upTo    uint64             // the burst: everything before
	began   protocol.Time
	due     protocol.Time // when to pull again
	running bool
	asks    int // how many it has asked to the right: what it hears then is an answer
}

// planCorrection makes the plan of correction with the delay as measured. Its ranks
// are places in the lineup, which has no holes.
func (m *Member) planCorrection() (err error) {
	m.delay.planned = m.delay.now
	m.mend, err = broadcast.NewPlan(broadcast.Config{
		Size: protocol.Rank(m.lineup.size()), Dissemination: broadcast.Preseeded{},
		Correction: broadcast.Delayed{Delay: m.delay.now},
	})
	return err
}

// correct has a correction begin before long for what has arrived, unless one
// is running or about to. It leaves the tree a moment to be done first, and
// follows the last one at some distance, to mend more at once.
func (m *Member) correct(now protocol.Time, f *flow) {
	c := &f.correction
	if c.running || c.due != protocol.Never || c.upTo == f.next || m.lineup.size() == 1 {
		return
	}
	c.due = max(now+min(max(m.delay.now, minLead), maxLead), c.began+pause)
	m.schedule(f, c.due)
}

// begin starts a correction of everything that is here.
func (m *Member) begin(now protocol.Time, f *flow) {
	c := &f.correction
	if c.plan != m.mend {
		c.plan, c.process = m.mend, m.mend.Process(protocol.Rank(m.lineup.self))
	}
	c.process.Reset()
	c.process.Receive(now, &broadcast.Message{Phase: protocol.Dissemination})
	c.upTo, c.began, c.running, c.asks = f.next, now, true, 0
}

// runCorrection pulls the correction as far as it goes now.
func (m *Member) runCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	c.due = protocol.Never
	if !c.running {
		m.begin(now, f)
	}
	var a broadcast.Action
	for {
		switch c.process.Next(now, &a); a.Verb {
		case protocol.Send:
			if a.Body.Kind == broadcast.Rightward {
				m.offer(m.lineup.members[a.To].Rank, f, rightward)
				// An answer takes a round trip, and the first one a connection.
				// Asking further out in the meantime, as the model does every o,
				// would ask everybody, and connect all with all.
				c.due = now + min(m.delay.now/2<<min(c.asks, 8), maxDelay)
				c.asks++
				m.schedule(f, c.due)
				return
			}
			distance, _ := m.lineup.distances(m.lineup.members[a.To].Rank)
			m.offerPast(f, distance, false, leftward)
		case protocol.WaitUntil:
			c.due = a.At
			m.schedule(f, c.due)
			return
		default:
			c.running = false
			m.correct(now, f)
			return
		}
	}
}

// way is which way an offer goes.
type way uint8

const (
	news      way = iota // none: it is only news
	leftward             // as a correction, or as the answer to one
	rightward            // as a correction, which asks for an answer
)

// offer tells a peer what is here of a root's stream. A last segment that is
// small goes along.
func (m *Member) offer(to protocol.Rank, f *flow, way way) {
	fr := frame{kind: offer, first: f.next, way: way}
	if seg, ok := f.store.get(f.next - 1); ok && f.next > 0 && len(seg.payload()) <= m.config.InlineSize {
		fr.with, fr.begins, fr.left, fr.batch, fr.segment = true, seg.begins, seg.left, seg.batch, seg.payload()
	}
	m.stats.Offers++
	m.put(to, f, fr)
}

// hearOffer takes an offer: it may mend a hole here, answer a correction that
// runs here, and ask for an answer.
func (m *Member) hearOffer(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if fr.with && fr.first-1 == f.next {
		m.stats.Early++
		m.take(now, f, from, fr.first-1, fr, byOffer)
	}
	m.hearLaggard(f, from, fr.first)
	if fr.first > f.next {
		f.wanted = max(f.wanted, fr.first)
		m.ask(now, f, from)
	}
	c := &f.correction
	switch {
	case fr.way == rightward && f.next > 0:
		// "If a process colored by dissemination receives a message from the
		// left, it immediately replies to stop the sender."
		m.offer(from, f, leftward)
	case fr.way == leftward && c.running && fr.first >= c.upTo:
		// News would not do: only who corrects has offered to all in between.
		place, ok := m.lineup.place(from)
		if !ok {
			return
		}
		if c.asks == 0 {
			m.measure(now - c.began)
		}
		c.process.Receive(now, &broadcast.Message{
			From: protocol.Rank(place), Phase: protocol.Correction, Body: broadcast.Body{Kind: broadcast.Leftward},
		})
		m.runCorrection(now, f)
	}
}

// delay is how long delayed correction waits for a neighbor's offer: the mean of
// what it took lately, and four times its deviation, as for a retransmission.
type delay struct {
	mean, deviation protocol.Time
	now, planned    protocol.Time
}

// measure takes in how long a neighbor's offer took.
func (m *Member) measure(took protocol.Time) {
	d := &m.delay
	if d.mean == 0 {
		d.mean, d.deviation = took, took/2
	}
	off := took - d.mean
	d.mean += off / 8
	d.deviation += (max(off, -off) - d.deviation) / 4
	d.now = min(max(d.mean+4*d.deviation, minDelay), maxDelay)
	if d.now > d.planned*5/4 || d.now < d.planned*3/4 {
		_ = m.planCorrection() // the same plan but for its delay, which is in bounds
	}
}
