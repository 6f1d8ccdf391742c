package stream

import "github.com/pleach-go/pleach/protocol"

// The root measures its propagation delay: the time from when a message is accepted until
// every member has acknowledged it. It uses the acknowledgments that Poll asks for, so it
// costs no frame. At most one message is timed at once, as TCP times one segment per round
// trip (Jacobson 1988): the newest one that was sent before a poll.
//
// A poll that comes long after the message tells nothing about how long the message took, so
// a sample of which the wait for the poll is a large part does not count.

// propagationBuckets is the number of buckets of a [Propagation].
const propagationBuckets = 16

// PropagationBounds returns the upper bounds of the buckets of a [Propagation].
func PropagationBounds() [propagationBuckets]protocol.Time {
	return [...]protocol.Time{
		100 * microsecond, 250 * microsecond, 500 * microsecond,
		1 * millisecond, 2500 * microsecond, 5 * millisecond,
		10 * millisecond, 25 * millisecond, 50 * millisecond,
		100 * millisecond, 250 * millisecond, 500 * millisecond,
		1000 * millisecond, 2500 * millisecond, 5000 * millisecond, 10_000 * millisecond,
	}
}

// Propagation is the distribution of the propagation delays that a root has measured.
type Propagation struct {
	Count          uint64
	Sum, Last, Max protocol.Time
	// Buckets count the delays by PropagationBounds, each without those of smaller bounds.
	// Longer ones are in none.
	Buckets [propagationBuckets]uint64
}

// add takes in a measured delay.
func (p *Propagation) add(took protocol.Time) {
	p.Count++
	p.Sum += took
	p.Last, p.Max = took, max(p.Max, took)
	for i, bound := range PropagationBounds() {
		if took <= bound {
			p.Buckets[i]++
			return
		}
	}
}

// maxIdle is the largest part of a sample, as a divisor, that may be the wait for the poll.
const maxIdle = 4

// propagationSample is the message that is timed.
type propagationSample struct {
	position               uint64        // of the last message that was timed, as receipts counts them
	accepted, sent, polled protocol.Time // 0: not yet; if accepted is, no message is timed
	before                 uint64        // the number that acknowledgments have to reach, if polled
}

// timeAccepted times the newest message that was accepted, unless another one has yet to be
// sent or to be acknowledged.
func (m *Member) timeAccepted(now protocol.Time) {
	s, accepted := &m.own.sample, m.own.receipts.accepted
	if accepted > s.position && (s.accepted == 0 || s.sent > 0) && s.polled == 0 {
		*s = propagationSample{position: accepted, accepted: now}
	}
}

// timeSent notes that the message that is timed was sent.
func (m *Member) timeSent(now protocol.Time) {
	if s := &m.own.sample; s.accepted > 0 && s.sent == 0 && m.own.sent() >= s.position {
		s.sent = now
	}
}

// timePoll notes that a poll asks for the message that is timed.
func (m *Member) timePoll(now protocol.Time) {
	if s := &m.own.sample; s.sent > 0 && s.polled == 0 {
		s.polled, s.before = now, m.own.flow.next
	}
}

// timeStable ends the measurement when all members have acknowledged the message.
func (m *Member) timeStable(now protocol.Time) {
	s, f := &m.own.sample, m.own.flow
	if s.polled == 0 {
		return
	}
	for _, r := range f.ackers {
		if f.acks.from[r] < s.before {
			return
		}
	}
	took, idle := now-s.accepted, s.polled-s.sent
	if len(f.ackers) > 0 && idle <= took/maxIdle {
		m.stats.Propagation.add(took)
	}
	s.end()
}

// end ends the measurement.
func (s *propagationSample) end() { *s = propagationSample{position: s.position} }
