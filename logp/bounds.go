package logp

import "github.com/pleach-go/pleach/protocol"

// What Corrected Trees proves about synchronized checked correction (§4.2), as
// formulas.

// CheckedTime is how long synchronized checked correction takes when no process is
// dead (Lemma 2).
//
// The paper prints 4o + L + ⌊L/o⌋·o, which holds where o divides L. A process
// stops when it has heard from both sides, at 3o + L. Sends start at multiples
// of o, and one that would start at just that moment is no longer made, so the
// last starts at (2 + ⌈L/o⌉)·o and is received 2o + L later. The paper's proof
// takes the multiple of o below 3o + L for the end of that send; where o does
// not divide L it is the start.
func CheckedTime(l, o protocol.Time) protocol.Time { return 4*o + l + ceilDiv(l, o)*o }

// CheckedMessages is how many messages every process then sends (Corollary 1,
// with the same correction: 3 + ⌈L/o⌉).
func CheckedMessages(l, o protocol.Time) int64 { return int64(3 + ceilDiv(l, o)) }

// CheckedBounds are the bounds on the time synchronized checked correction takes
// with dead processes that left a largest gap (Lemma 3).
func CheckedBounds(gap protocol.Rank, l, o protocol.Time) (low, high protocol.Time) {
	if gap == 0 {
		return CheckedTime(l, o), CheckedTime(l, o)
	}
	g := protocol.Time(gap)
	return CheckedTime(l, o) + g*o, CheckedTime(l, o) + (2*g+1)*o
}

func ceilDiv(a, b protocol.Time) protocol.Time { return (a + b - 1) / b }
