package lifecycle

import "github.com/pleach-go/pleach/protocol"

// A process that the others do not hear, or that is too slow for them, is removed again as
// soon as it is back, and each time all members change their view twice. So a process that
// was not a member for long waits before it joins again.

const (
	// settled is how long a membership lasts that shows that nothing is wrong any more.
	settled = 60_000 * millisecond
	// The pause after the second removal in a row doubles with each further one.
	firstPause, maxRejoinPause = 2000 * millisecond, 30_000 * millisecond
)

// Backoff is how long a process that was removed waits before it joins again. The zero
// Backoff is that of a process that has joined once.
type Backoff struct{ pause protocol.Time }

// Removed takes in that a membership has lasted for a while, and returns how long to wait.
func (b *Backoff) Removed(lasted protocol.Time) protocol.Time {
	if lasted >= settled {
		b.pause = 0
	}
	pause := b.pause
	b.pause = min(max(2*pause, firstPause), maxRejoinPause)
	return pause
}
