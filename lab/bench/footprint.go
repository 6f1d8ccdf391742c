package bench

import (
	"context"
	"runtime"
	"time"
)

// A footprint is taken at rest: members that have just met hold more for a while. A
// process rests when its memory changes by less than a fiftieth.
const (
	restBeforeFootprint = 500 * time.Millisecond
	mostRests           = 20
	restless            = 50
)

// Footprint is what this process holds.
type Footprint struct {
	Goroutines  int
	Heap, Stack uint64 // bytes
}

// Memory is heap and stacks together, in bytes.
func (f Footprint) Memory() uint64 { return f.Heap + f.Stack }

// takeFootprint counts what is in use: objects rather than the pages they are on,
// as a new group may fill what an earlier one left free.
func takeFootprint() Footprint {
	runtime.GC()
	runtime.GC() // what a sync.Pool holds goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Footprint{runtime.NumGoroutine(), m.HeapAlloc, m.StackInuse}
}

// RestingFootprint waits until there is less change. Before a group starts, that is the end of
// the earlier one: it holds buffers until its last goroutine has ended.
func RestingFootprint(ctx context.Context) Footprint {
	last := takeFootprint()
	for range mostRests {
		select {
		case <-ctx.Done():
			return last
		case <-time.After(restBeforeFootprint):
		}
		now := takeFootprint()
		change := max(now.Memory(), last.Memory()) - min(now.Memory(), last.Memory())
		last = now
		if change <= now.Memory()/restless {
			break
		}
	}
	return last
}
