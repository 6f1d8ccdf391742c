package broadcast

import (
	"context"
	"sync/atomic"
	"time"
)

// latch counts the members that have yet to get a burst. Members within this
// process count it down, from goroutines of their own.
type latch struct {
	// state is the number of the burst and, in its low half, how many members
	// have yet to get it. Both change at once: a member may be late, with an
	// earlier burst.
	state atomic.Uint64
	done  chan arrival
}

// arrival is when the last member had a burst.
type arrival struct {
	burst uint64
	at    time.Time
}

// expect turns to the next burst.
func (l *latch) expect(burst uint64, members int) {
	l.state.Store(burst<<32 | uint64(members))
}

// arrive is called by a member that has a burst. The last one takes the time.
func (l *latch) arrive(burst uint64) {
	for {
		state := l.state.Load()
		if state>>32 != burst || uint32(state) == 0 {
			return
		}
		if l.state.CompareAndSwap(state, state-1) {
			if uint32(state) == 1 {
				l.done <- arrival{burst, time.Now()}
			}
			return
		}
	}
}

// wait returns when the last member had the burst, or the zero time if that is
// too late.
func (l *latch) wait(ctx context.Context, burst uint64) time.Time {
	for {
		select {
		case last := <-l.done:
			if last.burst == burst {
				return last.at
			}
		case <-ctx.Done():
			return time.Time{}
		}
	}
}
