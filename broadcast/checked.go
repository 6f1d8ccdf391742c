package broadcast

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Checked correction sends to both sides of the ring, further and further out,
// until it has sent to a process it has heard from on that side (Corrected Trees
// §3.1, Corrected Gossip §III-C).
//
// It colors every live process, however many are dead and however large the
// gaps, "as long as no failures occur during the correction".
type Checked struct {
	// Throttle, if not 0, is a send's duration: a side that is finished keeps its
	// slots and leaves them idle, as in Corrected Gossip's analysis. Fewer messages
	// are sent, and the other side gets no faster.
	Throttle protocol.Time
}

// String returns the correction as flags spell it.
func (c Checked) String() string {
	if c.Throttle != 0 {
		return "throttled"
	}
	return "checked"
}

func (c Checked) check(cfg *Config) error {
	switch {
	case c.Throttle < 0:
		return fmt.Errorf("a send cannot take %d", c.Throttle)
	case c.Throttle > 0 && cfg.Start == Overlapped:
		return errors.New("throttled checked correction keeps the slots of a common start: choose a synchronized one")
	}
	return nil
}

func (c Checked) lateDuty() bool { return false }

func (c Checked) states(n int) func(i int) corrector {
	if c.Throttle > 0 {
		return slab(n, throttledState{sendTime: c.Throttle}, func(p *throttledState) corrector { return p })
	}
	return slab(n, checkedState{}, func(p *checkedState) corrector { return p })
}

type checkedState struct {
	sent     [sides]distance // distance sent to so far
	heard    [sides]distance // distance of the nearest sender heard from
	upcoming side            // left goes first
}

func (c *checkedState) begin(p *Process, _ protocol.Time) {
	*c = checkedState{heard: [sides]distance{p.reach(left), p.reach(right)}}
}

func (c *checkedState) handle(p *Process, _ protocol.Time, m *Message) {
	s := heardFrom(m.Body.Kind)
	c.heard[s] = min(c.heard[s], p.distance(s, m.From))
}

// next alternates between the sides that are not finished. A process that hears from
// no other ends when its two directions have met. The authors' simulator lets them
// overlap by one, and so does this, to agree with it.
func (c *checkedState) next(p *Process, _ protocol.Time, a *Action) {
	s := c.upcoming
	if c.finished(s) {
		s = s.other()
	}
	if c.finished(s) || c.sent[left]+c.sent[right] >= p.plan.circle() {
		a.Done()
		return
	}
	c.upcoming = s.other()
	c.sent[s]++
	p.correctAt(s, c.sent[s], a)
}

// finished reports whether a side needs no more messages: "if process 23
// received the nearest correction messages from processes 19 and 28, it
// continues sending correction messages, until it finally sent to both 19 and
// 28" (§3.1). What is heard only comes nearer, so finished sides stay so.
func (c *checkedState) finished(s side) bool { return c.sent[s] >= c.heard[s] }

// throttledState is checked correction in which a finished side keeps its slots.
type throttledState struct {
	checkedState
	sendTime protocol.Time
	resume   protocol.Time // when the idle slot is over
}

func (c *throttledState) begin(p *Process, now protocol.Time) {
	c.checkedState.begin(p, now)
	c.resume = 0
}

func (c *throttledState) next(p *Process, now protocol.Time, a *Action) {
	switch {
	case now < c.resume:
		a.WaitUntil(c.resume)
	case !c.finished(c.upcoming) || c.finished(c.upcoming.other()):
		c.checkedState.next(p, now, a)
	default:
		c.upcoming = c.upcoming.other()
		c.resume = now + c.sendTime
		a.WaitUntil(c.resume)
	}
}
