package stream

import "github.com/pleach-go/pleach/protocol"

// The lead is how long after a message its correction starts, so that the tree comes
// first. An offer that overtakes the tree is a message too many, and where members share
// processors it also delays the tree: a metastable failure begins so (Bronson et al.,
// "Metastable Failures in Distributed Systems", 2021). An offer that comes long after the
// tree leaves the orphans of a dead member waiting.
//
// So the lead follows a measurement, and nothing else: how far apart the tree reaches this
// member and its right neighbor. Every offer tells its age, which is the time since its
// sender has received the last segment of it. No clock is shared, and neither timers that
// fire late nor waits of the neighbor enter the measurement. On hosts of their own,
// neighbors are about one hop apart. Where members queue for processors, they are as far
// apart as the tree takes.

// skew is how far apart the tree reaches this member and its right neighbor: a moving mean
// and how far measurements are above it, as TCP keeps them of round trips (Jacobson 1988).
// Both sink faster than they rise, so that members find out soon when an overload is over.
type skew struct {
	mean, above protocol.Time
	near        protocol.Time // what the right neighbor has told of its own
	fixed       protocol.Time // lead of an experiment; 0: the lead is measured
}

// Bounds of the lead, and the mean skew before the first measurement.
const (
	minLead     = 300 * microsecond
	maxLead     = 100 * millisecond
	initialSkew = 1 * millisecond
)

// apart returns by how much most segments arrive earlier at one of two neighbors than at
// the other. Of some pairs the tree always reaches both at about the same time, so a
// member counts what its neighbors know, too, and the less the further away they are.
func (s *skew) apart() protocol.Time { return max(s.mean+2*s.above, s.near-s.near/8) }

// measure takes in that a segment arrived at the two members at these times.
func (s *skew) measure(here, there protocol.Time) {
	apart := min(max(here-there, there-here), maxLead)
	if off := apart - s.mean; off > 0 {
		s.mean += off / 8
		s.above += (off - s.above) / 4
	} else {
		s.mean += off / 4
		s.above -= s.above / 4
	}
}

// lead returns how long after a message its correction starts: the skew and half of it, so
// that few offers overtake the tree.
func (s *skew) lead() protocol.Time {
	if s.fixed > 0 {
		return s.fixed
	}
	return min(max(s.apart()*3/2, minLead), maxLead)
}

// Corrections of one stream begin leadsApart leads after each other at the earliest, within
// these bounds, so that one covers all messages in between. In a stream of messages that
// follow each other closely, offers then compete with few frames of the tree.
const (
	leadsApart  = 4
	minInterval = 2 * millisecond
	maxInterval = 100 * millisecond
)

// interval returns how long after the last correction of a stream the next one begins at
// the earliest.
func (s *skew) interval() protocol.Time {
	return min(max(leadsApart*s.lead(), minInterval), maxInterval)
}

// arrival is when the segment before a number has arrived.
type arrival struct {
	next uint64
	at   protocol.Time
}

// patience is how long the tree may take that is only slow. After that, a member that was
// reached by correction takes its parent for dead.
func (s *skew) patience() protocol.Time { return 4 * s.lead() }

// ageOf returns the time since the last segment before a number has arrived. It reports
// false if that is not known: only the last one is.
func (f *flow) ageOf(now protocol.Time, number uint64) (microseconds uint32, known bool) {
	if f.arrived.next != number {
		return 0, false
	}
	return uint32(min((now-f.arrived.at)/microsecond, 1<<32-1)), true
}

// measureSkew takes in the age of the right neighbor's offer. If the tree has yet to bring
// the last segment offered, the measurement waits for it.
func (m *Member) measureSkew(now protocol.Time, f *flow, fr *frame) {
	m.skew.near = min(protocol.Time(fr.skew)*microsecond, maxLead)
	there := arrival{fr.first, now - protocol.Time(fr.age)*microsecond}
	switch {
	case f.arrived.next == fr.first:
		m.skew.measure(f.arrived.at, there.at)
	case f.next < fr.first:
		f.offered = there
	}
}

// measureTree takes in that the tree has brought a segment. If the right neighbor has
// offered it before, the two arrivals are compared. A segment that the tree never brings
// is no measurement, because the parent may be dead.
func (m *Member) measureTree(now protocol.Time, f *flow, number uint64) {
	if f.offered.next == number+1 {
		m.skew.measure(now, f.offered.at)
		f.offered = arrival{}
	}
}

// yield postpones a correction whose timer fires late, by twice as much as it is late, and
// reports whether it does so. If processors are busy, frames of the tree wait for them, too,
// and offers would only be ahead of them. A member finds out by its next timer when they
// are through (local health awareness: Dadgar, Phillips & Currey, "Lifeguard", 2018).
//
// Timers are late on healthy hosts as well. So what counts is lateness compared with the lead, and
// all yields of one correction together take maxYield leads at most.
func (c *correction) yield(now, lead protocol.Time) bool {
	late := now - c.due
	if late < lead/4 || c.yielded+2*late > maxYield*lead {
		return false
	}
	c.yielded += 2 * late
	c.due = now + 2*late
	return true
}

// maxYield bounds the yields of a correction, in leads.
const maxYield = 3
