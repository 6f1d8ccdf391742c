package stream

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// correction mends a burst: everything of a root that is here when it begins.
// What comes meanwhile is for the next one, so at high rates one correction
// mends many messages.
type correction struct {
	process         *broadcast.Process // delayed correction, while it runs
	plan            *broadcast.Plan    // that process was made by
	upTo            uint64             // the burst: everything before
	began           protocol.Time
	due             protocol.Time // when to pull again
	running         bool
	rightwardOffers int // how many it has asked to the right: what it hears then is an answer
}

// planCorrection makes the plan of correction with the delay as measured. Its ranks
// are places in the lineup, which has no holes.
func (m *Member) planCorrection() (err error) {
	m.delay.planned = m.delay.current
	m.correctionPlan, err = broadcast.NewPlan(broadcast.Config{
		Size: protocol.Rank(m.roster.size()), Dissemination: broadcast.Arrived{},
		Correction: broadcast.Delayed{Delay: m.delay.current},
	})
	return err
}

// correct has a correction begin before long for what has arrived, unless one
// is running or about to. It leaves the tree a moment to be done first, and
// follows the last one at some distance, to mend more at once.
func (m *Member) scheduleCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if c.running || c.due != protocol.Never || c.upTo == f.next || m.roster.size() == 1 {
		return
	}
	c.due = max(now+min(max(m.delay.current, minLead), maxLead), c.began+correctionInterval)
	m.schedule(f, c.due)
}

// begin starts a correction of everything that is here.
func (m *Member) beginCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if c.plan != m.correctionPlan {
		c.plan, c.process = m.correctionPlan, m.correctionPlan.Process(protocol.Rank(m.roster.self))
	}
	c.process.Reset()
	c.process.Receive(now, &broadcast.Message{Phase: protocol.Dissemination})
	c.upTo, c.began, c.running, c.rightwardOffers = f.next, now, true, 0
}

// runCorrection pulls the correction as far as it goes now.
func (m *Member) runCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	c.due = protocol.Never
	if !c.running {
		m.beginCorrection(now, f)
	}
	var a broadcast.Action
	for {
		switch c.process.Next(now, &a); a.Verb {
		case protocol.Send:
			if a.Body.Kind == broadcast.Rightward {
				m.offer(m.roster.members[a.To].Rank, f, rightward)
				// An answer takes a round trip, and the first one a connection.
				// Asking further out in the meantime, as the model does every o,
				// would ask everybody, and connect all with all.
				c.due = now + min(m.delay.current/2<<min(c.rightwardOffers, 8), maxDelay)
				c.rightwardOffers++
				m.schedule(f, c.due)
				return
			}
			distance, _ := m.roster.distances(m.roster.members[a.To].Rank)
			m.offerPast(f, distance, false, leftward)
		case protocol.WaitUntil:
			c.due = a.At
			m.schedule(f, c.due)
			return
		default:
			c.running = false
			m.scheduleCorrection(now, f)
			return
		}
	}
}

// way is which way an offer goes.
type direction uint8

const (
	undirected direction = iota // none: it is only news
	leftward                    // as a correction, or as the answer to one
	rightward                   // as a correction, which asks for an answer
)

// offer tells a peer what is here of a root's stream. A last segment that is
// small goes along.
func (m *Member) offer(to protocol.Rank, f *flow, toward direction) {
	fr := frame{kind: offer, first: f.next, direction: toward}
	if seg, ok := f.store.get(f.next - 1); ok && f.next > 0 && len(seg.payload()) <= m.config.InlineSize {
		fr.inline, fr.begins, fr.remaining, fr.batch, fr.segment = true, seg.begins, seg.remaining, seg.batch, seg.payload()
	}
	m.stats.Offers++
	m.queueFrame(to, f, fr)
}

// hearOffer takes an offer: it may mend a hole here, answer a correction that
// runs here, and ask for an answer.
func (m *Member) handleOffer(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if fr.inline && fr.first-1 == f.next {
		m.stats.Early++
		m.receiveSegment(now, f, from, fr.first-1, fr, fromOffer)
	}
	m.updateSlowReceiver(f, from, fr.first)
	if fr.first > f.next {
		f.wanted = max(f.wanted, fr.first)
		m.schedulePull(now, f, from)
	}
	c := &f.correction
	switch {
	case fr.direction == rightward && f.next > 0:
		// "If a process colored by dissemination receives a message from the
		// left, it immediately replies to stop the sender."
		m.offer(from, f, leftward)
	case fr.direction == leftward && c.running && fr.first >= c.upTo:
		// News would not do: only who corrects has offered to all in between.
		index, ok := m.roster.index(from)
		if !ok {
			return
		}
		if c.rightwardOffers == 0 {
			m.measureDelay(now - c.began)
		}
		c.process.Receive(now, &broadcast.Message{
			From: protocol.Rank(index), Phase: protocol.Correction, Body: broadcast.Body{Kind: broadcast.Leftward},
		})
		m.runCorrection(now, f)
	}
}

// delay is how long delayed correction waits for a neighbor's offer: the mean of
// what it took lately, and four times its deviation, as for a retransmission.
type delay struct {
	mean, deviation  protocol.Time
	current, planned protocol.Time
}

// measure takes in how long a neighbor's offer took.
func (m *Member) measureDelay(took protocol.Time) {
	d := &m.delay
	if d.mean == 0 {
		d.mean, d.deviation = took, took/2
	}
	off := took - d.mean
	d.mean += off / 8
	d.deviation += (max(off, -off) - d.deviation) / 4
	d.current = min(max(d.mean+4*d.deviation, minDelay), maxDelay)
	if d.current > d.planned*5/4 || d.current < d.planned*3/4 {
		_ = m.planCorrection() // the same plan but for its delay, which is in bounds
	}
}
