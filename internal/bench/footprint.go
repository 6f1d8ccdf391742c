package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// A group is looked at when it has done a little, as some of what it holds comes
// with the first messages, and has come to rest: members that have just found each
// other may hold a lot for a while. It rests when it holds as much as before, but
// for a fiftieth.
const (
	roundsBeforeFootprint = 5
	restBeforeFootprint   = 500 * time.Millisecond
	mostRests             = 20
	restless              = 50
)

// footprint is what this process holds.
type footprint struct {
	goroutines int
	memory     uint64 // bytes
}

// takeFootprint counts what is in use: objects rather than the pages they are on,
// as a new group may fill what an earlier one left free.
func takeFootprint() footprint {
	runtime.GC()
	runtime.GC() // what a sync.Pool holds goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse}
}

// restingFootprint waits until there is less change.
func restingFootprint(ctx context.Context) footprint {
	last := takeFootprint()
	for range mostRests {
		select {
		case <-ctx.Done():
			return last
		case <-time.After(restBeforeFootprint):
		}
		now := takeFootprint()
		change := max(now.memory, last.memory) - min(now.memory, last.memory)
		if last = now; change <= now.memory/restless {
			break
		}
	}
	return last
}

// weigh says what a member holds, when before is what the process held without
// the group.
func (one *contestant) weigh(ctx context.Context, before footprint) error {
	for range roundsBeforeFootprint {
		if _, err := one.group.broadcast(ctx, limitOfRound); err != nil {
			return fmt.Errorf("bench: %s: %w", one.System, err)
		}
	}
	after := restingFootprint(ctx)
	members := float64(one.Members)
	one.Goroutines = round(float64(after.goroutines-before.goroutines)/members, 1)
	one.Memory = round((float64(after.memory)-float64(before.memory))/members, 0)
	return nil
}
