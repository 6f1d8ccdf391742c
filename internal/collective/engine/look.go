package engine

// A call that waits for a message looks before it sleeps: it polls the link for a short
// time (spin-then-block, or competitive spinning: Karlin et al., SOSP 1991). Where the other
// processes have processors of their own, the message is there before the goroutines that
// would have passed it on were woken. Where processors are short, looking delays the very
// process that is to send the message. So a process yields its processor between two looks,
// and stops looking where others do not give it back soon.

import (
	"runtime"
	"time"
)

// PollingLink is a [Link] that a goroutine can poll for messages of a member.
type PollingLink interface {
	Link
	// Poll takes messages that have arrived from a member, and calls [Engine.Receive]
	// for those that are complete. It does not block. It reports whether something has
	// arrived; if ok is false, the member cannot be polled at present. The caller does
	// not hold the engine's lock.
	Poll(from int) (received, ok bool)
	// Rest says that the caller sleeps instead of polling, so that the link's own
	// goroutines are woken for messages of all members again.
	Rest()
}

const (
	// adaptiveLook is how long an adaptive process looks at most. A process that yields
	// in between hardly takes a processor from others, so it is long enough for a step of
	// a collective among processes that share processors.
	adaptiveLook = time.Millisecond
	// longYield is the time beyond which a yield shows that processors are short: other
	// work took the processor for its slice of some milliseconds, and not only processes
	// that yield, too. Eight of those on one processor take some hundred microseconds.
	longYield = 2 * time.Millisecond
	// After a look that ended by a long yield, so many waits go without one, up to
	// maxPause. Each further one doubles that, and so many looks in a row that found their
	// message halve it.
	minPause, maxPause = 16, 4096
	successes          = 8
	// maxPartial is the number of partial receives after which a poll ends. A longer one
	// would keep the goroutines from running that send to other members.
	maxPartial = 4
)

// outcome is how a look has ended.
type outcome int

const (
	notPolled outcome = iota // the member cannot be polled, or the message is long
	found
	late      // the time is up
	preempted // other work had the processor for long
)

// looker decides which waits look, and for how long. The engine's lock guards it.
type looker struct {
	limit    time.Duration // at most; 0: never
	adaptive bool
	single   bool // this process runs one goroutine at a time
	pause    int  // waits without a look after the next one that is preempted
	left     int  // waits to come without a look
	row      int  // looks in a row that were not preempted
}

func (l *looker) init(c *Config) {
	switch {
	case c.PollTime > 0:
		l.limit = c.PollTime
	case c.PollTime == 0:
		l.limit, l.adaptive = adaptiveLook, true
	}
	l.single = runtime.GOMAXPROCS(0) == 1
}

// due reports whether a wait that begins now looks.
func (l *looker) due() bool {
	if l.left > 0 {
		l.left--
		return false
	}
	return l.limit > 0
}

// note takes in how a look has ended.
func (l *looker) note(o outcome) {
	switch {
	case !l.adaptive:
	case o == preempted:
		l.pause, l.row = min(max(minPause, 2*l.pause), maxPause), 0
		l.left = l.pause
	case o == found:
		l.row++
		if l.row == successes {
			l.pause, l.row = l.pause/2, 0
		}
	}
}

// look polls the link for the message of a slot, before the caller sleeps if it is not
// there. The caller holds the engine's lock, which is released meanwhile.
func (e *Engine) look(s *slot, rank int) {
	if e.polling == nil || rank == e.config.Rank {
		return
	}
	if e.looker.due() {
		e.looker.note(e.pollUntil(s, rank))
	}
	if !s.here {
		e.rest()
	}
}

// rest says that the caller is about to sleep. The caller holds the engine's lock, which is
// released meanwhile.
func (e *Engine) rest() {
	if e.polling != nil {
		e.mu.Unlock()
		e.polling.Rest()
		e.mu.Lock()
	}
}

// pollUntil polls until the message is there or the time is up. The caller holds the
// engine's lock, which is released meanwhile.
func (e *Engine) pollUntil(s *slot, rank int) outcome {
	var began, last, now time.Duration // 0: before the first yield
	for partial := 0; partial < maxPartial; {
		received, ok := e.poll(rank)
		switch {
		case s.here:
			return found
		case !ok:
			return notPolled
		case received:
			partial++
			continue
		case began == 0:
			now = e.now()
			began = now
		}
		last, now = now, e.yieldBetweenLooks()
		switch {
		case e.looker.adaptive && now-last > longYield:
			return preempted
		case now-began > e.looker.limit:
			return late
		}
	}
	return notPolled
}

// poll polls without the lock.
func (e *Engine) poll(rank int) (received, ok bool) {
	e.mu.Unlock()
	defer e.mu.Lock()
	return e.polling.Poll(rank)
}

// yieldBetweenLooks lets other processes, and other goroutines, run. It returns the time.
func (e *Engine) yieldBetweenLooks() time.Duration {
	e.mu.Unlock()
	defer e.mu.Lock()
	if e.looker.single {
		runtime.Gosched()
	}
	yieldProcessor()
	return e.now()
}
