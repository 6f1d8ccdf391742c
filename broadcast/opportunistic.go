package broadcast

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Opportunistic correction sends to the nearest processes on both sides of the
// ring, up to a fixed distance, whatever it hears (Corrected Trees §3.1).
//
// It colors every live process "only if the maximum gap size does not exceed
// 2d"; on a k-ary tree that holds for any k − 1 dead if d ≥ ⌊k/2⌋ (§3.2.1 asks
// for k − 1 messages in all, which is just that).
type Opportunistic struct {
	// Distance is d, per side.
	Distance protocol.Rank
}

// String returns the correction as flags spell it.
func (o Opportunistic) String() string { return fmt.Sprintf("opportunistic:%d", o.Distance) }

func (o Opportunistic) check(*Config) error { return checkDistance(o.Distance) }

func (o Opportunistic) lateDuty() bool { return false }

func (o Opportunistic) states(n int) func(i int) corrector {
	return slab(n, opportunisticState{distance: clamp(o.Distance)}, func(p *opportunisticState) corrector { return p })
}

// checkDistance checks the distance of the opportunistic family.
func checkDistance(d protocol.Rank) error {
	if d < 1 {
		return fmt.Errorf("opportunistic correction to distance %d corrects nothing", d)
	}
	return nil
}

// clamp bounds a distance that goes beyond any ring.
func clamp(d protocol.Rank) distance { return distance(min(d, MaxSize)) }

type opportunisticState struct {
	distance distance
	bound    [sides]distance // how far this process may have to send
	sent     [sides]distance // how far it has, or need no longer
}

// begin bounds both sides by d, and on a small ring so that together they send
// to every other process once.
func (o *opportunisticState) begin(p *Process, _ protocol.Time) {
	o.sent = [sides]distance{}
	o.bound = [sides]distance{
		left:  min(o.distance, (p.plan.circle()-1)/2, p.reach(left)),
		right: min(o.distance, p.plan.circle()/2, p.reach(right)),
	}
}

func (o *opportunisticState) handle(*Process, protocol.Time, *Message) {}

// next sends to the side that has sent less, right first.
func (o *opportunisticState) next(p *Process, _ protocol.Time, a *Action) {
	s := right
	if o.finished(right) || !o.finished(left) && o.sent[left] < o.sent[right] {
		s = left
	}
	if o.finished(s) {
		a.Done()
		return
	}
	o.sent[s]++
	p.correctAt(s, o.sent[s], a)
}

func (o *opportunisticState) finished(s side) bool { return o.sent[s] >= o.bound[s] }
