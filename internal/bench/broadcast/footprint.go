package broadcast

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/pleach-go/pleach/internal/bench"
)

// A footprint is taken after some rounds, as the first messages allocate, and at
// rest: members that have just met hold more for a while. A group rests when its
// memory changes by less than a fiftieth.
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

// weigh computes what a member holds; before is what the process held without the
// group.
func (one *systemUnderTest) weigh(ctx context.Context, before footprint) error {
	for range roundsBeforeFootprint {
		if _, err := one.group.broadcast(ctx, limitOfRound); err != nil {
			return fmt.Errorf("bench: %s: %w", one.System, err)
		}
	}
	after := restingFootprint(ctx)
	members := float64(one.Members)
	one.Goroutines = bench.Round(float64(after.goroutines-before.goroutines)/members, 1)
	one.Memory = bench.Round((float64(after.memory)-float64(before.memory))/members, 0)
	return nil
}
