package fault

import (
	"math/rand/v2"
	"slices"
	"time"
)

// link is one direction of a pair: it decides what becomes of each frame, and
// keeps those that are to go out later. All under the network's lock.
type link struct {
	direction
	net    *Network
	random *rand.Rand
	held   []heldFrame // by due time, and in order where that is equal
	last   time.Time   // due time of the last frame that was to keep its order
	stop   func() bool // stops the timer for the first of held; may be nil
}

type heldFrame struct {
	due   time.Time
	bytes []byte
}

func newLink(n *Network, d direction) *link {
	// A large odd factor, so that neighboring pairs have unrelated streams.
	pair := uint64(d.from)*0x9e3779b97f4a7c15 + uint64(d.to)
	return &link{direction: d, net: n, random: rand.New(rand.NewPCG(n.seed, pair))}
}

// outcome is what becomes of one frame.
type outcome struct {
	drop, duplicate, reorder bool
	delay                    time.Duration // in order
	behind                   time.Duration // after others
}

// decide draws the fate of the next frame. It draws the same number of times
// for each, so that changing one setting leaves the other decisions as they were.
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

// send lets a frame meet its fate. An error is that of the inner transport, for
// a frame that needed no waiting.
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
	l.flush() // A late timer may have left some that go first.
	err := l.pass(frame)
	if copies == 2 {
		_ = l.pass(frame) // The caller is told about the first.
	}
	return err
}

// due returns when a frame is to go out: never before those sent before it,
// unless these were to be overtaken.
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

// count counts why a frame does not go out at once.
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

// hold keeps a frame behind all that are due no later.
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

// flush sends what is due, and sees to it that the rest will be.
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

// release sends a frame that was held. Nobody is left to tell an error to.
func (l *link) release(frame []byte) {
	if l.net.severed(l.direction) {
		l.net.stats.Cut++
		return
	}
	_ = l.pass(frame)
}

// arm sets the timer for the first frame held.
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

// pass hands a frame to the inner transport.
func (l *link) pass(frame []byte) error {
	m := l.net.members[l.from]
	if err := m.inner.Send(l.to, frame); err != nil {
		l.net.stats.Refused++
		return err
	}
	l.net.stats.Passed++
	return nil
}

// drain sends all that is held now, due or not.
func (l *link) drain() {
	for _, h := range l.held {
		l.release(h.bytes)
	}
	l.held = nil
	l.clear()
}

// clear loses all that is held, and starts over.
func (l *link) clear() {
	l.net.stats.Lost += uint64(len(l.held))
	l.held = nil
	l.last = time.Time{}
	l.disarm()
}
