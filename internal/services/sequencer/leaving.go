package sequencer

// A member that leaves hands the order over first: it stays until another member knows the order, if
// there is one that may come to know it. Two members that leave at once do not rely on each other.

import "github.com/pleach-go/pleach/protocol"

// heirPause is how long a member that leaves waits before it asks the others again.
const heirPause Time = 100e6

// heirs are the members that may know the order when this one has left.
type heirs struct {
	leaving bool
	due     Time // when they are asked again
}

// Leave says that this member is about to leave. [HandedOver] follows when it may: another member
// that stays knows the order, or no other member takes part in it. The driver bounds the wait.
func (j *Joining) Leave(now Time) {
	if !j.leaving {
		j.leaving = true
		j.findHeir(now)
	}
}

// findHeir asks the other members whether they know the order.
func (j *Joining) findHeir(now Time) {
	j.heirs.due = protocol.Never
	if !j.knows {
		j.out = append(j.out, HandedOver{})
		return
	}
	if len(j.members) == 0 { // without a quorum: a member may be on its way back
		j.heirs.due = now + heirPause
		return
	}
	var asked []int
	for _, m := range j.members {
		if m != j.order.config.Self && len(asked) < maxAsked {
			asked = append(asked, m.Rank)
		}
	}
	left, found, hope := len(asked), false, false
	if left == 0 {
		j.out = append(j.out, HandedOver{})
		return
	}
	for _, rank := range asked {
		j.ask(rank, StateRequest, askKnows(), func(now Time, r Reply) {
			left--
			switch {
			case found:
				return
			case r.Err == nil && len(r.Body) == 1:
				found = true
			case r.Err == nil && len(r.Body) > 1: // it leaves, too
			case !r.NoPart:
				hope = true
			}
			switch {
			case found || left == 0 && !hope:
				j.out = append(j.out, HandedOver{})
			case left == 0:
				j.heirs.due = now + heirPause
			}
		})
	}
}
