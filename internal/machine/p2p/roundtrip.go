package p2p

import "github.com/pleach-go/pleach/protocol"

// roundTrip estimates how long a peer takes to acknowledge a segment, its delay included, and derives
// the retransmission timeout from it (Jacobson 1988). One segment is timed at a time. A segment that is
// sent again is not timed, because its acknowledgment may be that of the first copy (Karn & Partridge
// 1987). So peers that share few processors, and acknowledge late, are not polled for it: polls
// would make them later still.
type roundTrip struct {
	mean, deviation protocol.Time
	timed           uint64 // one past the number of the timed segment; 0: none
	sentAt          protocol.Time
}

// start times a segment, unless another one is timed.
func (r *roundTrip) start(number uint64, now protocol.Time) {
	if r.timed == 0 {
		r.timed, r.sentAt = number+1, now
	}
}

// acknowledged takes in an acknowledgment of the segments before a number.
func (r *roundTrip) acknowledged(number uint64, now protocol.Time) {
	if r.timed == 0 || number < r.timed {
		return
	}
	sample := now - r.sentAt
	r.timed = 0
	if r.mean == 0 {
		r.mean, r.deviation = max(sample, 1), sample/2
		return
	}
	off := sample - r.mean
	r.mean = max(r.mean+off/8, 1)
	r.deviation += (max(off, -off) - r.deviation) / 4
}

// discard gives up the segment that is timed.
func (r *roundTrip) discard() { r.timed = 0 }

// timeout returns the retransmission timeout.
func (r *roundTrip) timeout() protocol.Time {
	return min(max(minRTO, r.mean+4*r.deviation), maxRTO)
}
