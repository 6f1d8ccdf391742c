package rollouts

import "github.com/pleach-go/pleach/protocol"

// Stagger is how long a member waits for each member with a lower rank, before it proposes in their place.
const Stagger protocol.Time = 2e9

// Clock decides what a process proposes because time has passed, or the view has changed. A process
// leaves it to the members with lower ranks as long as they may do it. The zero value has seen nothing.
type Clock struct {
	steps map[string]since
	view  since
}

// since is when a process has seen a step of a rollout, or a view, first.
type since struct {
	number uint64
	at     protocol.Time
}

// note notes when a number was seen first.
func (s *since) note(number uint64, now protocol.Time) protocol.Time {
	if s.number != number {
		*s = since{number, now}
	}
	return s.at
}

// Next returns the next command that a process proposes, and when by its own clock. It is not ok if
// there is none. The process calls it again when the table or the view has changed.
func (c *Clock) Next(now protocol.Time, t *Table, v *View, self Process) (next Command, at protocol.Time, ok bool) {
	patience := Stagger
	for i, p := range v.Members {
		if p == self {
			patience = protocol.Time(i) * Stagger
		}
	}
	seen := c.view.note(v.Number, now)
	if t.wants(v.Number) {
		next, at, ok = Command{Op: Seen, View: v}, seen+patience, true
	}
	steps := make(map[string]since, len(t.rollouts))
	for _, r := range t.rollouts {
		s := c.steps[r.ID]
		began := s.note(r.Step, now)
		steps[r.ID] = s
		after, clocked := r.ends()
		if clocked && (!ok || began+after+patience < at) {
			next, at, ok = Command{Op: Tick, ID: r.ID, Step: r.Step}, began+after+patience, true
		}
	}
	c.steps = steps
	return next, at, ok
}

// ends returns after which time a clock ends the step of a rollout. It is not ok if none does.
func (r *Rollout) ends() (after protocol.Time, ok bool) {
	switch {
	case r.Paused || r.Phase.Ended():
		return 0, false
	case r.Phase == Holding:
		return r.Hold, true
	default:
		return r.Timeout, true
	}
}

// wants reports whether the rollouts have to see a view of a number.
func (t *Table) wants(view uint64) bool {
	if view <= t.view {
		return false
	}
	for _, r := range t.rollouts {
		if !r.Phase.Ended() || r.Phase == Reverted && r.misses() {
			return true
		}
	}
	return false
}
