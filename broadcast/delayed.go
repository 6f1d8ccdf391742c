package broadcast

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Delayed correction sends one message to the left, then waits. Only a process that
// has heard nothing from the right by then sends to the right, further and further,
// until a process answers (Corrected Trees §3.3).
//
// It colors every live process as checked correction does, with one message per
// process when none is dead; a gap costs the delay. "The delay does not
// introduce a failure detector": too short a delay costs messages, never a
// process.
type Delayed struct {
	// Delay is how long to wait after the first message.
	Delay protocol.Time
	// Patient waits before each message to the right for at least twice as long again as
	// the broadcast has taken until then. A slow tree thereby makes for few messages,
	// however slow it is. It takes a clock that starts with the broadcast, as LogP has.
	Patient bool
	// Paced waits for the delay before each message to the right, not only the first: on
	// links whose latency is many overheads, an answer takes as long as many sends.
	Paced bool
}

// String returns the correction as flags spell it.
func (d Delayed) String() string {
	switch {
	case d.Patient:
		return fmt.Sprintf("patient:%d", d.Delay)
	case d.Paced:
		return fmt.Sprintf("paced:%d", d.Delay)
	}
	return fmt.Sprintf("delayed:%d", d.Delay)
}

func (d Delayed) check(c *Config) error {
	switch {
	case d.Delay < 0:
		return fmt.Errorf("a delay of %d lies in the past", d.Delay)
	case c.EarlyOnlyRelay:
		return fmt.Errorf("delayed correction needs an answer from every process that the tree reaches: early processes must take part")
	case c.Line:
		return fmt.Errorf("delayed correction asks to the right all around the ring: it cannot run on a line")
	}
	return nil
}

func (d Delayed) lateDuty() bool { return false }

func (d Delayed) states(n int) func(i int) corrector {
	return slab(n, delayedState{delay: d.Delay, patient: d.Patient, paced: d.Patient || d.Paced},
		func(p *delayedState) corrector { return p })
}

type delayedState struct {
	delay    protocol.Time
	patient  bool
	paced    bool          // waits before each message to the right
	deadline protocol.Time // when waiting is over; 0: not yet waiting
	sent     distance      // distance sent to on the right
	opened   bool          // the first message has gone left
	answered bool          // a process on the right lives
	askers   []protocol.Rank
}

func (d *delayedState) begin(*Process, protocol.Time) {
	*d = delayedState{delay: d.delay, patient: d.patient, paced: d.paced, askers: d.askers[:0]}
}

// handle notes an answer from the right, and owes one to a process that asks from
// the left: "if a process colored by dissemination receives a message from the
// left, it immediately replies to stop the sender".
func (d *delayedState) handle(_ *Process, _ protocol.Time, m *Message) {
	if heardFrom(m.Body.Kind) == right {
		d.answered = true
		return
	}
	d.askers = append(d.askers, m.From)
}

func (d *delayedState) next(p *Process, now protocol.Time, a *Action) {
	if len(d.askers) > 0 {
		asker := d.askers[0]
		d.askers = d.askers[1:]
		p.correctAt(left, p.distance(left, asker), a)
		return
	}
	switch {
	case !d.opened:
		d.opened = true
		p.correctAt(left, 1, a)
		return
	case d.deadline == 0:
		d.wait(now)
	}
	switch {
	case d.answered || d.sent == p.plan.circle()-1:
		a.Wait() // a process may still ask
	case now < d.deadline:
		a.WaitUntil(d.deadline)
	default:
		d.sent++
		if d.paced {
			d.wait(now)
		}
		p.correctAt(right, d.sent, a)
	}
}

// wait sets how long to wait from now on.
func (d *delayedState) wait(now protocol.Time) {
	d.deadline = now + d.delay
	if d.patient {
		d.deadline = max(d.deadline, 3*now)
	}
}
