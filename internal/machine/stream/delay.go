package stream

import "github.com/pleach-go/pleach/protocol"

// How long a correction waits for the right neighbor, once it has made its own offer. That
// neighbor makes an offer unasked, unless the tree has not reached it. A question that is
// too early is a message too many, and on overloaded hosts makes the tree slower still. So
// the wait follows what neighbors take, backs off while that is unknown, and a budget
// bounds the questions that turn out to be useless.

// delay is how long a correction waits for its right neighbor's offer: the mean of the
// measured times plus four times their deviation, which is the retransmission timeout
// of TCP (Jacobson, "Congestion Avoidance and Control", 1988).
type delay struct {
	mean, deviation protocol.Time
	wait            protocol.Time // longer than measured while neighbors that are asked are only late
	planned         protocol.Time // the wait of correctionPlan
}

// Bounds of the wait, and its value before anything has been measured.
const (
	minWait     = 300 * microsecond
	maxWait     = 1000 * millisecond
	initialWait = 5 * millisecond
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
	m.setWait(d.mean + 4*d.deviation)
}

// decay is the part by which the delay sinks with a correction without a measurement.
const decay = 24

// decayDelay lets the delay sink slowly while the neighbor is earlier than this member,
// so that there is nothing to measure.
func (m *Member) decayDelay() {
	d := &m.delay
	d.mean -= d.mean / decay
	d.deviation -= d.deviation / decay
	m.setWait(d.wait - d.wait/decay)
}

// backOff doubles the wait, because a neighbor that was asked was only late. It stays so
// until a neighbor's offer comes unasked and is measured (Karn & Partridge 1987).
func (m *Member) backOff() { m.setWait(2 * m.delay.wait) }

// setWait sets how long corrections wait.
func (m *Member) setWait(wait protocol.Time) {
	d := &m.delay
	d.wait = min(max(wait, minWait), maxWait)
	if d.wait > d.planned*5/4 || d.wait < d.planned*3/4 {
		_ = m.planCorrection() // cannot fail: only the delay differs, which is in bounds
	}
}

// passOver returns how long a neighbor that was asked has time to answer before the next
// one out is asked, too, after so many were: a few times as long as neighbors are apart,
// and twice as long for each further one. A question further out may open a connection,
// which costs more than to wait. A neighbor that refuses connections is passed over at
// once (see [Member.SendFailed]).
func (m *Member) passOver(asked int) protocol.Time {
	return min(max(4*m.skew.lead(), minPassOver)<<min(asked, 16), maxWait)
}

// minPassOver is the least time until the first neighbor is passed over.
const minPassOver = 1 * millisecond

// budget bounds the questions to the right that were not needed, to a share of all
// corrections: a token bucket, as the retry budgets of gRPC and Envoy are. A correction
// without a token is not given up, as a member may depend on it. It waits for longer.
type budget struct{ spent int }

// A question costs as much as questionCost corrections earn, and maxSpent may be spent
// ahead. Without a token, a question waits for patientLeads leads.
const (
	questionCost = 8
	maxSpent     = 32 * questionCost
	patientLeads = 16
)

func (b *budget) earn()   { b.spent = max(b.spent-1, 0) }
func (b *budget) spend()  { b.spent = min(b.spent+questionCost, maxSpent) }
func (b *budget) refund() { b.spent = 0 }

// postpone returns the time of the next step of a correction that began at a time. Without
// a token, it is later than planned.
func (b *budget) postpone(began, planned, lead protocol.Time) protocol.Time {
	if b.spent+questionCost > maxSpent {
		return max(planned, began+min(patientLeads*lead, maxWait))
	}
	return planned
}
