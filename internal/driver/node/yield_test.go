package node

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// count returns how many of some wake-ups yield. Each of those waits.
func (y *yielder) count(wakes int, wait func()) (yields int) {
	for range wakes {
		if y.due() {
			yields++
			wait()
		}
	}
	return yields
}

// In a process in which no goroutine waits for a processor, few wake-ups yield. Once one
// has waited for long, all of them do, until none has for a while.
func TestOnlyABusyProcessYields(t *testing.T) {
	var y yielder
	idle := func() { y.waited(0) }
	busy := func() { y.waited(longWait) }
	if n := y.count(10*sampledWakes, idle); n != 10 {
		t.Errorf("%d wake-ups of %d yield in an idle process, want 10", n, 10*sampledWakes)
	}
	if n := y.count(10*sampledWakes, busy); n < 9*sampledWakes {
		t.Errorf("%d wake-ups of %d yield in a busy process, want nearly all", n, 10*sampledWakes)
	}
	if n := y.count(yieldsAfterWait, idle); n != yieldsAfterWait {
		t.Errorf("%d wake-ups of %d yield in a process that was busy, want all", n, yieldsAfterWait)
	}
	if n := y.count(10*sampledWakes, idle); n != 10 {
		t.Errorf("%d wake-ups of %d yield in a process that was busy long ago, want 10", n, 10*sampledWakes)
	}
}

// witness is a protocol that notes whether a goroutine had run when its deadline came.
type witness struct {
	Protocol
	ran, ranBefore atomic.Bool
}

func (w *witness) Next(protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	w.ranBefore.Store(w.ran.Load())
	return protocol.NoRank, nil, nil, false
}

func (w *witness) Deadline() protocol.Time { return protocol.Never }

// A goroutine that waits for a processor runs before a protocol learns that its deadline
// has come. Go's scheduler may choose otherwise now and then.
func TestWaitingGoroutinesRunBeforeTimers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 5 {
		w := &witness{}
		n := New(Config{Protocol: w})
		go w.ran.Store(true)
		n.wake()
		if w.ranBefore.Load() {
			return
		}
	}
	t.Error("a timer runs ahead of a goroutine that waits")
}
