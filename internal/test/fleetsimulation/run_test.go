package fleetsimulation

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// Times are in nanoseconds.
const (
	microsecond relay.Time = 1e3
	millisecond            = 1e3 * microsecond
	second                 = 1e3 * millisecond
)

// Options are for replays and for tests of the simulation itself.
type Options struct {
	// Timeline, if not nil, gets what happens, a line for each event.
	Timeline io.Writer
	// Configure, if not nil, changes the config of every machine: tests plant bugs there.
	Configure func(*relay.Config)
	// Tamper, if not nil, sees every frame that crosses zones, and reports whether it is lost
	// without a word: tests plant bugs there.
	Tamper func(frame []byte) bool
	// Chooser, if not nil, wraps the machine of every delegate: tests plant bugs there.
	Chooser func(chooser) chooser
}

// Result is what came out of a run.
type Result struct {
	Seed uint64
	// Err is the first promise that was broken, or nil.
	Err error
	// Time is how long it took on the virtual clock.
	Time relay.Time
	// Apart is how long it took until all zones were in one backbone when the trouble was over.
	Apart relay.Time
	// Departed is how often a delegate left a backbone meanwhile, at most.
	Departed int
	// Events, Sent, Delivered, Kills, Cuts and Lost count what happened. Lost are messages of
	// which a notice told, as is promised to zones that were away for too long.
	Events, Sent, Delivered, Kills, Cuts, Lost uint64
}

// Simulation is one run.
type Simulation struct {
	options Options
	rng     *rand.Rand
	plan    plan
	now     relay.Time
	queue   events
	order   uint64
	zones   []*zone
	checker checker
	result  Result
	calm    bool // the trouble is over
}

// event is something that happens at a time.
type event struct {
	at    relay.Time
	order uint64
	do    func()
}

// events is a heap, the earliest event first; those of one time in the order in which they
// were scheduled.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Bounds of a run: one that goes beyond has run away, or is stuck.
const (
	maxEvents = 3_000_000
	maxCalm   = 300 * second
)

// Run runs the simulation of a seed.
func Run(seed uint64, o Options) Result {
	s := &Simulation{
		options: o, now: second, rng: rand.New(rand.NewPCG(seed, 0x666c656574)),
		result: Result{Seed: seed},
	}
	s.checker.sim = s
	s.plan = drawPlan(s.rng)
	s.begin()
	s.checker.watch()
	s.runUntil(s.now+meetTime, nil)
	s.checker.unite()
	s.runUntil(s.now+introductionTime, nil)
	s.checker.met = s.now
	s.record("", "the zones have met: %v", &s.plan)
	for _, m := range s.members() {
		m.write()
	}
	s.planTrouble()
	s.runUntil(s.now+s.plan.trouble, nil)
	s.endTrouble()
	s.checker.unite()
	if end := s.now + maxCalm; !s.runUntil(end, s.checker.complete) {
		s.checker.failStuck()
	}
	s.checker.rest()
	s.result.Err, s.result.Time = s.checker.err, s.now
	return s.result
}

// meetTime is how long the zones have to meet before the first broadcast.
const meetTime = 20 * second

// introductionTime is how long they then have to exchange positions: a zone that others have given up begins
// with the messages after that.
const introductionTime = 10 * second

// begin starts all members.
func (s *Simulation) begin() {
	for i := range s.plan.zones {
		z := &zone{sim: s, name: zoneName(i)}
		s.zones = append(s.zones, z)
		for range s.plan.members {
			z.start()
		}
	}
}

func zoneName(i int) string { return string(rune('a' + i)) }

// members returns those that are alive.
func (s *Simulation) members() (list []*member) {
	for _, z := range s.zones {
		list = append(list, z.alive()...)
	}
	return list
}

// after schedules something.
func (s *Simulation) after(d relay.Time, do func()) {
	s.order++
	heap.Push(&s.queue, event{s.now + max(d, 0), s.order, do})
}

// runUntil runs the events up to a time. It returns early when done, which is asked now and
// then, says so, or when a promise is broken.
func (s *Simulation) runUntil(end relay.Time, done func() bool) bool {
	const interval = 100 * millisecond
	next := s.now
	for s.checker.err == nil {
		if done != nil && s.now >= next {
			next = s.now + interval
			if done() {
				return true
			}
		}
		if len(s.queue) == 0 || s.queue[0].at > end {
			s.now = end
			return done != nil && done()
		}
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		s.result.Events++
		if s.result.Events > maxEvents {
			s.checker.fail("%d events: the fleet runs away", maxEvents)
		}
		e.do()
	}
	return true
}

// record adds a line to the timeline.
func (s *Simulation) record(who, format string, args ...any) {
	if s.options.Timeline != nil {
		fmt.Fprintf(s.options.Timeline, "%10.6f s  %-4s %s\n", float64(s.now)/1e9, who, fmt.Sprintf(format, args...))
	}
}

// between draws a time.
func (s *Simulation) between(low, high relay.Time) relay.Time {
	return low + relay.Time(s.rng.Int64N(int64(max(high-low, 1))))
}
