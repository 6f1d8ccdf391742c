package stream

import "github.com/pleach-go/pleach/protocol"

// How long correction lets the tree go first. A tree on overloaded hosts is slow, and a
// correction that overtakes it adds to the load that makes it so: a metastable failure
// (Bronson et al., "Metastable Failures in Distributed Systems", 2021). Four rules
// prevent that. The delay follows what neighbors really take, and backs off while that
// is unknown. The lead follows how much earlier correction was than the tree. A member
// whose own timers are late waits until they are not. A budget bounds the offers that
// turn out to be useless.

// delay is how long delayed correction waits for a neighbor's offer: the mean of the
// measured times plus four times their deviation, which is the retransmission timeout
// of TCP (Jacobson, "Congestion Avoidance and Control", 1988).
type delay struct {
	mean, deviation protocol.Time
	current         protocol.Time // what a round trip to a neighbor takes, at most
	// wait is how long a correction waits. It is longer than current while corrections
	// ask neighbors that are only late.
	wait, planned protocol.Time
}

// Bounds of the delay, and its value before anything has been measured. Only members
// that have proved to be alive make a correction wait for longer than maxDelay.
const (
	minDelay     = 300 * microsecond
	maxDelay     = 100 * millisecond
	maxWait      = 1000 * millisecond
	initialDelay = 5 * millisecond
)

// measureDelay adds the time that a neighbor's offer took to the measurements. An
// answer to an offer is no measurement (Karn & Partridge, "Improving Round-Trip Time
// Estimates in Reliable Transport Protocols", 1987): it tells how long the offer took,
// and not how long the tree.
func (m *Member) measureDelay(took protocol.Time) {
	d := &m.delay
	if d.mean == 0 {
		d.mean, d.deviation = took, took/2
	}
	off := took - d.mean
	d.mean += off / 8
	d.deviation += (max(off, -off) - d.deviation) / 4
	m.applyDelay(d.mean + 4*d.deviation)
}

// decay is the part by which the delay sinks with a correction without a measurement.
const decay = 24

// decayDelay lets the delay sink slowly while the neighbor is earlier than this member,
// so that there is nothing to measure.
func (m *Member) decayDelay() {
	d := &m.delay
	d.mean -= d.mean / decay
	d.deviation -= d.deviation / decay
	m.applyDelay(max(d.mean+4*d.deviation, d.wait-d.wait/decay))
}

// backOff doubles the wait, because a neighbor that was asked was only late. It stays so
// until a neighbor's offer comes unasked and is measured (Karn & Partridge 1987).
func (m *Member) backOff() { m.setWait(2 * m.delay.wait) }

// applyDelay sets the delay as measured.
func (m *Member) applyDelay(measured protocol.Time) {
	measured = max(measured, minDelay)
	m.delay.current = min(measured, maxDelay)
	m.setWait(measured)
}

// setWait sets how long corrections wait.
func (m *Member) setWait(wait protocol.Time) {
	d := &m.delay
	d.wait = min(wait, maxWait)
	if d.wait > d.planned*5/4 || d.wait < d.planned*3/4 {
		_ = m.planCorrection() // cannot fail: only the delay differs, which is in bounds
	}
}

// A correction starts some time after a message, so that the tree comes first.
// Corrections of one stream are at least correctionInterval apart, see distance: one
// corrects everything that came in between.
const (
	minLead            = 1 * millisecond
	maxLead            = 10 * millisecond
	correctionInterval = 2 * millisecond
)

// lead is how long after a message its correction starts: as long as most neighbors
// take, within minLead and maxLead, and by how much that was too early.
func (m *Member) lead(now protocol.Time) protocol.Time {
	return min(max(m.delay.mean+2*m.delay.deviation, minLead), maxLead) + m.early.recent(now)
}

// yield postpones a correction whose timer fires late, by twice as much as it is late, and
// reports whether it does so. This host is overloaded then, so that frames of the tree
// wait for a processor, too, and a correction would only be ahead of them. When they
// are through, timers are on time: a member needs no measurement to find that out (local
// health awareness: Dadgar, Phillips & Currey, "Lifeguard", 2018).
func (c *correction) yield(now protocol.Time) bool {
	late := 2 * (now - c.due)
	if late < 2*minDelay || c.yielded+late > 2*maxDelay {
		return false
	}
	c.yielded += late
	c.due = now + late
	return true
}

// distance is how long after the last correction of a stream the next one begins at the
// earliest. On an overloaded host it is many times as long as timers are late: the offers
// of one message compete with the frames of the next ones, and in a large group on few
// processors there would be as many offers as frames.
func (c *correction) distance() protocol.Time {
	return correctionInterval + min(distanceOfYield*c.yielded, maxWait)
}

// distanceOfYield is the distance in terms of the time by which a correction was postponed.
const distanceOfYield = 12

// passOver returns how long a neighbor that was asked has time to answer before the next
// one out is asked, too, after so many were. The nearest neighbors on the ring are
// connected. A question further out opens a connection, which costs more than to wait,
// and under overload makes more of it. A neighbor that refuses connections is passed over at once
// (see [Member.SendFailed]).
func (d *delay) passOver(asked int) protocol.Time {
	return min(max(d.wait/2, minPassOver)<<min(2*asked, 16), maxWait)
}

// minPassOver is the least time until the first neighbor is passed over.
const minPassOver = 20 * millisecond

// patience is how long a tree may take that is only slow: several times as long as a
// correction. Before that, no member looks for another parent or probes its neighbor.
func (m *Member) patience(now protocol.Time) protocol.Time {
	return 4 * (m.lead(now) + m.delay.wait)
}

// early is by how much correction was too early lately: the time from a segment's
// arrival by an offer to its arrival by the tree. A segment that the tree never brings
// says nothing: its parent may be dead.
type early struct{ by, at protocol.Time }

// maxEarly bounds the time, which halves every earlyHalfLife without a longer one.
const (
	maxEarly      = maxDelay
	earlyHalfLife = 500 * millisecond
)

// recent returns the time, as far as it still counts.
func (e *early) recent(now protocol.Time) protocol.Time {
	return e.by >> min((now-e.at)/earlyHalfLife, 62)
}

// measure adds a measurement. A single one counts half.
func (e *early) measure(now, by protocol.Time) {
	if recent := e.recent(now); by > recent {
		e.by, e.at = (recent+min(by, maxEarly))/2, now
	}
}

// budget bounds the offers to the right that were not needed, to a share of all
// corrections: a token bucket, as the retry budgets of gRPC and Envoy are. A correction
// without a token is not given up, as a member may depend on it. It waits for maxWait.
type budget struct{ spent int }

// An offer to the right costs as much as offerCost corrections earn, and maxSpent may
// be spent ahead.
const (
	offerCost = 8
	maxSpent  = 32 * offerCost
)

func (b *budget) earn()   { b.spent = max(b.spent-1, 0) }
func (b *budget) spend()  { b.spent = min(b.spent+offerCost, maxSpent) }
func (b *budget) refund() { b.spent = 0 }

// postpone returns when a correction that began at a time goes on, which without a
// token is later than planned.
func (b *budget) postpone(began, planned protocol.Time) protocol.Time {
	if b.spent+offerCost > maxSpent {
		return max(planned, began+maxWait)
	}
	return planned
}
