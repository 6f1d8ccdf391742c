package fault

import (
	"math/rand/v2"
	"slices"
	"time"
)

// link is one direction of a pair: it decides the outcome of each frame, and holds
// those that go out later. The lock of the network guards it.
type link struct {
	direction
	net    *Network
	random *rand.Rand
	held   []heldFrame // by due time, and in order where that is equal
	last   time.Time   // due time of the last frame that is not reordered
	stop   func() bool // stops the timer for the first of held; may be nil
}

type heldFrame struct {
	due   time.Time
	bytes []byte
}

func newLink(n *Network, d direction) *link {
	// A large odd factor, so that neighboring pairs have unrelated random streams.
	pair := uint64(d.from)*0x9e3779b97f4a7c15 + uint64(d.to)
	return &link{direction: d, net: n, random: rand.New(rand.NewPCG(n.seed, pair))}
}

// outcome is what happens to one frame.
type outcome struct {
	drop, duplicate, reorder bool
	delay                    time.Duration // in order
	behind                   time.Duration // after others
}

// decide draws the outcome of the next frame. It draws the same number of times for
// each, so that changing one setting leaves the other decisions as they were.
func (l *link) decide() outcome {
	n, d := l.net, l.direction
	reorder, delay := n.reorder.of(d), n.delay.of(d)
	return outcome{
		drop:      l.random.Float64()*100 < n.drop.of(d),
		duplicate: l.random.Float64()*100 < n.duplicate.of(d),
		reorder:   l.random.Float64()*100 < reorder.Percent,
		behind:    share(reorder.Within, l.random.Float64()),
		delay:     delay.Fixed + share(delay.Jitter, l.random.Float64()),
	}
}

func share(d time.Duration, part float64) time.Duration { return time.Duration(float64(d) * part) }

// send applies the faults to a frame. An error is that of the inner transport, for a
// frame that goes out at once.
func (l *link) send(frame []byte) error {
	n := l.net
	n.stats.Sent++
	f := l.decide()
	switch {
	case n.severed(l.direction):
		n.stats.Cut++
		return nil
	case f.drop:
		n.stats.Dropped++
		return nil
	}
	copies := 1
	if f.duplicate {
		n.stats.Duplicated++
		copies = 2
	}

	now := n.config.Clock.Now()
	due := l.due(now, f)
	if due.After(now) || n.frozen[l.from] {
		l.count(f)
		for range copies {
			l.hold(due, frame)
		}
		l.arm(now)
		return nil
	}
	l.flush() // A late timer may have left frames that go first.
	err := l.pass(frame)
	if copies == 2 {
		_ = l.pass(frame) // The caller gets the error of the first copy.
	}
	return err
}

// due returns when a frame goes out: never before the frames sent before it, unless
// those are reordered.
func (l *link) due(now time.Time, f outcome) time.Time {
	due := now.Add(f.delay)
	if due.Before(l.last) {
		due = l.last
	}
	if f.reorder {
		return due.Add(f.behind)
	}
	l.last = due
	return due
}

// count counts the reason why a frame does not go out at once.
func (l *link) count(f outcome) {
	switch stats := &l.net.stats; {
	case l.net.frozen[l.from]:
		stats.Frozen++
	case f.reorder:
		stats.Reordered++
	default:
		stats.Delayed++
	}
}

// hold inserts a frame behind all that are due no later.
func (l *link) hold(due time.Time, frame []byte) {
	if len(l.held) >= l.net.config.Held {
		l.net.stats.Overflowed++
		return
	}
	i := len(l.held)
	for i > 0 && l.held[i-1].due.After(due) {
		i--
	}
	l.held = slices.Insert(l.held, i, heldFrame{due, slices.Clone(frame)})
}

// flush sends the frames that are due, and sets the timer for the rest.
func (l *link) flush() {
	if l.net.frozen[l.from] {
		return // Until it thaws.
	}
	now := l.net.config.Clock.Now()
	i := 0
	for i < len(l.held) && !l.held[i].due.After(now) {
		l.release(l.held[i].bytes)
		i++
	}
	l.held = slices.Delete(l.held, 0, i)
	l.arm(now)
}

// release sends a frame that was held. Its caller has returned, so an error is lost.
func (l *link) release(frame []byte) {
	if l.net.severed(l.direction) {
		l.net.stats.Cut++
		return
	}
	_ = l.pass(frame)
}

// arm sets the timer for the first held frame.
func (l *link) arm(now time.Time) {
	l.disarm()
	if len(l.held) > 0 && !l.net.frozen[l.from] {
		l.stop = l.net.config.Clock.AfterFunc(l.held[0].due.Sub(now), func() { l.net.locked(l.flush) })
	}
}

func (l *link) disarm() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// pass passes a frame to the inner transport.
func (l *link) pass(frame []byte) error {
	m := l.net.members[l.from]
	if err := m.inner.Send(l.to, frame); err != nil {
		l.net.stats.Refused++
		return err
	}
	l.net.stats.Passed++
	return nil
}

// drain sends all held frames now, due or not.
func (l *link) drain() {
	for _, h := range l.held {
		l.release(h.bytes)
	}
	l.held = nil
	l.clear()
}

// clear drops all held frames.
func (l *link) clear() {
	l.net.stats.Lost += uint64(len(l.held))
	l.held = nil
	l.last = time.Time{}
	l.disarm()
}
