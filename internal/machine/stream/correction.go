package stream

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// correction is the correction of one burst: of everything of a root that is here when
// it begins. Segments that arrive while it runs belong to the next one, so at high
// rates one correction covers many messages.
type correction struct {
	process         *broadcast.Process // runs delayed correction
	plan            *broadcast.Plan    // the plan that process was made by
	upTo            uint64             // the first segment after the burst
	since           protocol.Time      // when the first segment after it arrived, or 0
	began           protocol.Time
	due             protocol.Time // when to continue
	yielded         protocol.Time // how long it was postponed, see yield
	dense           bool          // the correction before has postponed it
	running         bool
	rightwardOffers int // offers that went right: what arrives after one may be its answer
	// heardTo is how much the right neighbor has offered, also before a correction, and
	// toldTo how much the left neighbor was offered over the present connection.
	heardTo, toldTo uint64
}

// planCorrection makes the correction plan with the present wait. Its ranks are indexes
// in the roster, which has no holes.
func (m *Member) planCorrection() (err error) {
	m.delay.planned = m.delay.wait
	m.correctionPlan, err = broadcast.NewPlan(broadcast.Config{
		Size: protocol.Rank(m.roster.size()), Dissemination: broadcast.Preseeded{},
		Correction: broadcast.Delayed{Delay: m.delay.wait},
	})
	return err
}

// scheduleCorrection schedules a correction for what has arrived, unless one is running
// or scheduled. It leaves the tree some time first, and keeps its distance from the
// last correction, so as to cover more segments at once.
func (m *Member) scheduleCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if c.upTo == f.next || m.roster.size() == 1 {
		return
	}
	if c.since == 0 {
		c.since = now
	}
	if c.due != protocol.Never { // one that runs is due, too
		return
	}
	own, afterLast := c.since+m.skew.lead(), c.began+m.skew.interval()
	c.due, c.dense, c.yielded = max(now, own, afterLast), afterLast > own, 0
	m.schedule(f, c.due)
}

// beginCorrection starts a correction of everything that is here.
func (m *Member) beginCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if c.plan != m.correctionPlan {
		c.plan, c.process = m.correctionPlan, m.correctionPlan.Process(protocol.Rank(m.roster.self))
	}
	c.process.Reset()
	c.process.Receive(now, &broadcast.Message{Phase: protocol.Dissemination})
	c.upTo, c.since, c.began, c.running, c.rightwardOffers = f.next, 0, now, true, 0
	m.budget.earn()
	if c.heardTo >= c.upTo {
		m.decayDelay()
		m.heardFromRight(now, c, m.roster.neighbor(1, true))
	}
}

// heardFromRight tells a correction that a member on its right has everything.
func (m *Member) heardFromRight(now protocol.Time, c *correction, from protocol.Rank) {
	if index, ok := m.roster.index(from); ok {
		c.process.Receive(now, &broadcast.Message{
			From: protocol.Rank(index), Phase: protocol.Correction, Body: broadcast.Body{Kind: broadcast.Leftward},
		})
	}
}

// stop ends a correction, because the ring is another now.
func (c *correction) stop() { c.running, c.due = false, protocol.Never }

// runCorrection runs the correction as far as it goes now.
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
				m.offer(now, m.roster.members.At(int(a.To)).Rank, f, rightward)
				// An answer takes a round trip. Offering to further neighbors meanwhile, as
				// the model does every o, would reach all members and connect each with each.
				c.due = now + m.passOver(c.rightwardOffers)
				c.rightwardOffers++
				m.budget.spend()
				m.schedule(f, c.due)
				return
			}
			if to := m.roster.members.At(int(a.To)).Rank; !m.hasTold(to, f) {
				distance, _ := m.roster.distances(to)
				m.offerPast(now, f, distance, false, leftward)
			}
		case protocol.WaitUntil:
			c.due = m.budget.postpone(c.began, a.At, m.skew.lead())
			if c.dense {
				c.due += m.skew.interval() // the neighbor's is postponed, too
			}
			m.schedule(f, c.due)
			return
		default:
			c.running = false
			m.scheduleCorrection(now, f)
			return
		}
	}
}

// hasTold reports whether a member on the left was offered everything already, by a
// correction or as an answer. One of them is enough.
func (m *Member) hasTold(to protocol.Rank, f *flow) bool {
	return to == m.roster.neighbor(1, false) && f.correction.toldTo >= f.next
}

// direction is the direction in which an offer travels on the ring.
type direction uint8

const (
	undirected direction = iota // an announcement outside of any correction
	leftward                    // a correction, or the answer to one that went right
	rightward                   // a correction that asks for an answer
)

// offer tells a peer how much of a root's stream is here (IHAVE). It carries the last
// segment if that is small.
func (m *Member) offer(now protocol.Time, to protocol.Rank, f *flow, toward direction) {
	fr := frame{kind: offer, first: min(f.next, m.shareEndWith(f, to)), direction: toward}
	if seg, ok := f.store.get(fr.first - 1); ok && len(seg.payload()) <= m.config.InlineSize {
		fr.inline, fr.begins, fr.remaining = true, seg.begins, seg.remaining
		fr.batch, fr.labeled, fr.traced = seg.batch, seg.labeled, seg.traced
		fr.messages, fr.unaccepted, fr.segment = seg.messages, f.unaccepted(fr.first-1), seg.payload()
	}
	if toward == leftward && to == m.roster.neighbor(1, false) {
		f.correction.toldTo = fr.first
		fr.age, fr.aged = f.ageOf(now, fr.first)
		fr.skew = uint32(m.skew.apart() / microsecond)
	}
	m.stats.Offers++
	m.queueFrame(to, f, fr)
}

// handleOffer handles an offer. It may fill a hole here, answer a correction that runs
// here, or ask for an answer.
func (m *Member) handleOffer(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if fr.aged && from == m.roster.neighbor(1, true) {
		m.measureSkew(now, f, fr)
	}
	if fr.inline && fr.first-1 == f.next {
		m.stats.Early++
		m.receiveSegment(now, f, from, fr.first-1, fr, fromOffer)
	}
	if fr.first > f.next {
		f.wanted = max(f.wanted, fr.first)
		m.schedulePull(now, f, from, true)
	}
	switch {
	case fr.direction == rightward && (f.next == 0 || m.hasTold(from, f)):
	case fr.direction == rightward:
		// "If a process colored by dissemination receives a message from the left, it
		// immediately replies to stop the sender."
		m.offer(now, from, f, leftward)
	case fr.direction == leftward:
		// An undirected offer is no answer: only a member that corrects has made offers
		// to all members in between.
		m.handleLeftward(now, f, from, fr.first)
	}
}

// handleLeftward handles an offer of a member on the right that corrects, or that
// answers a correction. The right neighbor's counts also before a correction begins
// here: a member that the tree reaches later than its neighbor has nothing to ask.
func (m *Member) handleLeftward(now protocol.Time, f *flow, from protocol.Rank, first uint64) {
	c := &f.correction
	nearest := from == m.roster.neighbor(1, true)
	if nearest {
		c.heardTo = max(c.heardTo, first)
	}
	if !c.running || first < c.upTo {
		return
	}
	switch {
	case c.rightwardOffers == 0 && !c.dense:
		m.measureDelay(now - c.began)
	case c.rightwardOffers == 0:
	case nearest:
		m.backOff() // it lives, and would have made its offer
	default:
		m.budget.refund() // its offers are what members in between have missed
	}
	m.heardFromRight(now, c, from)
	m.runCorrection(now, f)
}
