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
	// Throttle, if not 0, is a send's duration: a side that is finished then
	// keeps its turns and lets them pass, as in Corrected Gossip's analysis.
	// Fewer messages are sent, and the other side gets no faster.
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
		return errors.New("throttled checked correction keeps the turns of a common start: choose a synchronized one")
	}
	return nil
}

func (c Checked) lateDuty() bool { return false }

func (c Checked) parts(n int) func(i int) corrector {
	if c.Throttle > 0 {
		return slab(n, throttledPart{turnTime: c.Throttle}, func(p *throttledPart) corrector { return p })
	}
	return slab(n, checkedPart{}, func(p *checkedPart) corrector { return p })
}

type checkedPart struct {
	sent  [sides]distance // distance sent to so far
	heard [sides]distance // distance of the nearest sender heard from
	turn  side            // left goes first
}

func (c *checkedPart) begin(p *Process, _ protocol.Time) {
	*c = checkedPart{heard: [sides]distance{p.reach(left), p.reach(right)}}
}

func (c *checkedPart) hear(p *Process, _ protocol.Time, m *Message) {
	s := heardFrom(m.Body.Kind)
	c.heard[s] = min(c.heard[s], p.distance(s, m.From))
}

// next takes turns between the sides that are not finished. Who hears from
// nobody ends when its two ways have met; the authors' simulator lets them
// overlap by one, and so do we, to agree with it.
func (c *checkedPart) next(p *Process, _ protocol.Time, a *Action) {
	s := c.turn
	if c.finished(s) {
		s = s.other()
	}
	if c.finished(s) || c.sent[left]+c.sent[right] >= p.plan.circle() {
		a.Done()
		return
	}
	c.turn = s.other()
	c.sent[s]++
	p.correctAt(s, c.sent[s], a)
}

// finished reports whether a side needs no more messages: "if process 23
// received the nearest correction messages from processes 19 and 28, it
// continues sending correction messages, until it finally sent to both 19 and
// 28" (§3.1). What is heard only comes nearer, so finished sides stay so.
func (c *checkedPart) finished(s side) bool { return c.sent[s] >= c.heard[s] }

// throttledPart is checked correction where a finished side keeps its turns.
type throttledPart struct {
	checkedPart
	turnTime protocol.Time
	resume   protocol.Time // when the turn that is let pass is over
}

func (c *throttledPart) begin(p *Process, now protocol.Time) {
	c.checkedPart.begin(p, now)
	c.resume = 0
}

func (c *throttledPart) next(p *Process, now protocol.Time, a *Action) {
	switch {
	case now < c.resume:
		a.WaitUntil(c.resume)
	case !c.finished(c.turn) || c.finished(c.turn.other()):
		c.checkedPart.next(p, now, a)
	default:
		c.turn = c.turn.other()
		c.resume = now + c.turnTime
		a.WaitUntil(c.resume)
	}
}
