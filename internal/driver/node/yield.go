package node

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Go's scheduler runs timers ahead of goroutines that wait for a processor, as those do
// that read frames. So a timer may be on time although frames are late, and a protocol
// would take what is only late for lost. On a busy host, a timer therefore lets those
// goroutines go first, and a protocol sees by its timers how late frames are.
//
// To let others go first costs something where there are none: it wakes another thread,
// which competes with a goroutine that has a frame to pass on. So most timers do it only
// after one has shown that goroutines wait.

const (
	// longWait is how long goroutines of a busy process wait for a processor at least.
	longWait = 200 * time.Microsecond
	// yieldsAfterWait is for how many wake-ups a process counts as busy after one that
	// has waited for long. Of others, one in sampledWakes finds out whether it is.
	yieldsAfterWait = 16
	sampledWakes    = 16
)

// yielder decides which wake-ups let waiting goroutines go first.
type yielder struct {
	wakes  atomic.Uint32
	yields atomic.Int32 // wake-ups to come that do
}

// yield lets waiting goroutines go first, if they probably wait for long.
func (y *yielder) yield() {
	if !y.due() {
		return
	}
	began := time.Now()
	runtime.Gosched()
	y.waited(time.Since(began))
}

// due reports whether the present wake-up yields.
func (y *yielder) due() bool {
	return y.wakes.Add(1)%sampledWakes == 1 || y.yields.Load() > 0
}

// waited takes in how long a wake-up that has yielded took.
func (y *yielder) waited(d time.Duration) {
	if d >= longWait {
		y.yields.Store(yieldsAfterWait)
	} else if y.yields.Load() > 0 {
		y.yields.Add(-1)
	}
}
