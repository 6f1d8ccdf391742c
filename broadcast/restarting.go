package broadcast

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Restarting is Buntinas' broadcast (Corrected Gossip §IV-B2, BFB): a tree whose
// messages name the receiver's descendants, acknowledged back to the root. A
// failure detector tells a process that a child has died; it sends a negative
// acknowledgment up, and the root starts over without the dead.
//
// While the root lives it colors every live process, whichever others die, at twice
// a tree's time and once more for each failure on the way: the restarting
// baseline. It is the only
// dissemination that needs a detector.
type Restarting struct{}

func (Restarting) check(c *Config) error {
	if c.Correction != nil {
		return fmt.Errorf("a restarting broadcast with %s correction: it already restarts until all are reached, choose one",
			c.Correction)
	}
	return nil
}

func (Restarting) hop() protocol.Time { return 0 }

func (Restarting) states(n int) func(i int) disseminator {
	return slab(n, restartingState{}, func(p *restartingState) disseminator { return p })
}

type restartingState struct {
	attempt     int32
	parent      protocol.Rank
	descendants []protocol.Rank // still to be reached, in rank order
	pending     []protocol.Rank // children that have not acknowledged
	dead        []protocol.Rank // what the detector has said, sorted
	answer      Kind            // Ack or Nack to be sent up; Payload: none yet
	answered    bool
}

func (r *restartingState) begin(p *Process, _ protocol.Time, _ *Message) {
	*r = restartingState{parent: protocol.NoRank, dead: r.dead}
	if p.rank() == p.plan.root {
		r.restart(p)
	}
}

// restart begins an attempt at the root, over all that are not known dead.
func (r *restartingState) restart(p *Process) {
	all := make([]protocol.Rank, 0, p.plan.ring.Size-1)
	for d := distance(1); d < p.plan.circle(); d++ {
		all = append(all, p.neighbor(right, d))
	}
	r.adopt(r.attempt+1, protocol.NoRank, all)
}

// adopt takes up a place in the tree of an attempt.
func (r *restartingState) adopt(attempt int32, parent protocol.Rank, descendants []protocol.Rank) {
	r.attempt, r.parent, r.descendants = attempt, parent, descendants
	r.pending = r.pending[:0]
	r.answer, r.answered = Payload, false
}

func (r *restartingState) handle(p *Process, _ protocol.Time, m *Message) {
	switch {
	case m.Body.Kind == Payload && m.Body.Clock > r.attempt:
		r.adopt(m.Body.Clock, m.From, *m.Body.Known)
	case m.Body.Clock != r.attempt:
		// of an attempt that is over
	case m.Body.Kind == Ack:
		if i := slices.Index(r.pending, m.From); i >= 0 {
			r.pending = slices.Delete(r.pending, i, i+1)
		}
	case m.Body.Kind == Nack:
		r.fail(p)
	}
}

// fail gives this attempt up.
func (r *restartingState) fail(p *Process) {
	if p.rank() == p.plan.root {
		r.restart(p)
		return
	}
	r.descendants = nil
	r.answer = Nack
}

// report takes the detector's word. A child that died may have left its
// descendants without the message.
func (r *restartingState) report(p *Process, _ protocol.Time, failed protocol.Rank) {
	if i, found := slices.BinarySearch(r.dead, failed); !found {
		r.dead = slices.Insert(r.dead, i, failed)
	}
	if slices.Contains(r.pending, failed) {
		r.fail(p)
	}
}

func (r *restartingState) forget() { r.dead = r.dead[:0] }

func (r *restartingState) next(p *Process, _ protocol.Time, a *Action) {
	if child, ok := r.chooseChild(); ok {
		r.pending = append(r.pending, child)
		r.pass(child, a)
		return
	}
	if r.answer == Payload && len(r.pending) == 0 {
		r.answer = Ack
	}
	if r.answer == Payload || r.answered || p.rank() == p.plan.root {
		a.Wait()
		return
	}
	r.answered = true
	a.Send(protocol.Acknowledgment, r.parent, Body{Kind: r.answer, Clock: r.attempt})
}

// chooseChild takes the first of the upper half of the descendants, so that
// the tree is binomial; a child known dead is left out for the next one.
func (r *restartingState) chooseChild() (child protocol.Rank, ok bool) {
	for len(r.descendants) > 0 {
		i := len(r.descendants) / 2
		child = r.descendants[i]
		if _, dead := slices.BinarySearch(r.dead, child); !dead {
			return child, true
		}
		r.descendants = slices.Concat(r.descendants[:i], r.descendants[i+1:])
	}
	return protocol.NoRank, false
}

// pass sends the payload to the child in the middle of the descendants and
// leaves it those above.
func (r *restartingState) pass(child protocol.Rank, a *Action) {
	i := len(r.descendants) / 2
	below := slices.Clip(r.descendants[i+1:])
	r.descendants = r.descendants[:i]
	a.Send(protocol.Dissemination, child, Body{Kind: Payload, Clock: r.attempt, Known: &below})
}
