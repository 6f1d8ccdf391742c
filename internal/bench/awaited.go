package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// awaited is the burst that a group waits for: members within this process count
// it down from goroutines of their own.
type awaited struct {
	// state is the number of the burst and, in its low half, how many members
	// have yet to get it. Both change at once: a member may be late, with a
	// burst that is no longer awaited.
	state atomic.Uint64
	done  chan arrival
}

// arrival is when the last member had a burst.
type arrival struct {
	burst uint64
	at    time.Time
}

// expect turns to the next burst.
func (a *awaited) expect(burst uint64, members int) {
	a.state.Store(burst<<32 | uint64(members))
}

// arrived is what a member calls that has a burst. The last one takes the time.
func (a *awaited) arrived(burst uint64) {
	for {
		state := a.state.Load()
		if state>>32 != burst || uint32(state) == 0 {
			return
		}
		if a.state.CompareAndSwap(state, state-1) {
			if uint32(state) == 1 {
				a.done <- arrival{burst, time.Now()}
			}
			return
		}
	}
}

// wait returns when the last member had the burst, or the zero time if that is
// too late.
func (a *awaited) wait(ctx context.Context, burst uint64) time.Time {
	for {
		select {
		case last := <-a.done:
			if last.burst == burst {
				return last.at
			}
		case <-ctx.Done():
			return time.Time{}
		}
	}
}
