package stream

import "github.com/pleach-go/pleach/protocol"

// baseDelay is how long a credit takes when nothing waits in queues: a round trip over
// the tree. It is the least that one took lately, as in LEDBAT (Shalunov, Hazel, Iyengar
// & Kuehlewind, RFC 6817, 2012). Between hosts that are far apart it is longer than any
// queue should be, and only what a credit takes beyond it is spent in queues.
type baseDelay struct {
	began        protocol.Time // the present interval
	least, older protocol.Time // of this interval, and of the one before; 0: not measured
}

// baseInterval is how long a measurement counts at least, and half of how long it counts
// at most: paths become longer, too.
const baseInterval = 60_000 * millisecond

// measure takes in what a credit took.
func (b *baseDelay) measure(now, took protocol.Time) {
	if now-b.began >= baseInterval {
		*b = baseDelay{began: now, older: b.least}
	}
	if b.least == 0 || took < b.least {
		b.least = took
	}
}

// known returns the base delay, and reports false if it was not measured yet.
func (b *baseDelay) known() (protocol.Time, bool) {
	if b.older > 0 && b.older < b.least {
		return b.older, true
	}
	return b.least, b.least > 0
}
