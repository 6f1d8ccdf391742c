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
	began           protocol.Time
	due             protocol.Time // when to continue
	running         bool
	rightwardOffers int // offers that went right: what arrives after one may be its answer
}

// planCorrection makes the correction plan with the current delay. Its ranks are
// indexes in the roster, which has no holes.
func (m *Member) planCorrection() (err error) {
	m.delay.planned = m.delay.current
	m.correctionPlan, err = broadcast.NewPlan(broadcast.Config{
		Size: protocol.Rank(m.roster.size()), Dissemination: broadcast.Preseeded{},
		Correction: broadcast.Delayed{Delay: m.delay.current},
	})
	return err
}

// scheduleCorrection schedules a correction for what has arrived, unless one is running
// or scheduled. It leaves the tree some time first, and keeps its distance from the
// last correction, so as to cover more segments at once.
func (m *Member) scheduleCorrection(now protocol.Time, f *flow) {
	c := &f.correction
	if c.running || c.due != protocol.Never || c.upTo == f.next || m.roster.size() == 1 {
		return
	}
	c.due = max(now+min(max(m.delay.current, minLead), maxLead), c.began+correctionInterval)
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
	c.upTo, c.began, c.running, c.rightwardOffers = f.next, now, true, 0
}

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
				m.offer(m.roster.members[a.To].Rank, f, rightward)
				// An answer takes a round trip, and the first one takes a connection. Going
				// on to further neighbors meanwhile, as the model does every o, would reach
				// all members and connect each with each.
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

// direction is the direction in which an offer travels on the ring.
type direction uint8

const (
	undirected direction = iota // an announcement outside of any correction
	leftward                    // a correction, or the answer to one that went right
	rightward                   // a correction that asks for an answer
)

// offer tells a peer how much of a root's stream is here (IHAVE). It carries the last
// segment if that is small.
func (m *Member) offer(to protocol.Rank, f *flow, toward direction) {
	fr := frame{kind: offer, first: min(f.next, m.shareEnd(f)), direction: toward}
	if seg, ok := f.store.get(fr.first - 1); ok && fr.first > 0 && len(seg.payload()) <= m.config.InlineSize {
		fr.inline, fr.begins, fr.remaining, fr.batch = true, seg.begins, seg.remaining, seg.batch
		fr.messages, fr.segment = seg.messages, seg.payload()
	}
	m.stats.Offers++
	m.queueFrame(to, f, fr)
}

// handleOffer handles an offer. It may fill a hole here, answer a correction that runs
// here, or ask for an answer.
func (m *Member) handleOffer(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if fr.inline && fr.first-1 == f.next {
		m.stats.Early++
		m.receiveSegment(now, f, from, fr.first-1, fr, fromOffer)
	}
	if fr.first > f.next {
		f.wanted = max(f.wanted, fr.first)
		m.schedulePull(now, f, from)
	}
	c := &f.correction
	switch {
	case fr.direction == rightward && f.next > 0:
		// "If a process colored by dissemination receives a message from the left, it
		// immediately replies to stop the sender."
		m.offer(from, f, leftward)
	case fr.direction == leftward && c.running && fr.first >= c.upTo:
		// An undirected offer is no answer: only a member that corrects has made offers
		// to all members in between.
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

// delay is how long delayed correction waits for a neighbor's offer: the mean of the
// measured times plus four times their deviation, which is the retransmission timeout
// of TCP (Jacobson, "Congestion Avoidance and Control", 1988).
type delay struct {
	mean, deviation  protocol.Time
	current, planned protocol.Time
}

// measureDelay adds the time that a neighbor's offer took to the measurements.
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
		_ = m.planCorrection() // cannot fail: only the delay differs, which is in bounds
	}
}
