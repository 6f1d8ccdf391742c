package rollouts

import (
	"fmt"
	"slices"
)

// see takes a view.
func (t *Table) see(v *View) Verdict {
	if v == nil || len(v.Members) > MaxMembers {
		return Wrong
	}
	if v.Number <= t.view {
		return Late
	}
	t.view, t.members = v.Number, make(map[string]uint64, len(v.Members))
	for _, p := range v.Members {
		t.members[p.ID] = p.Incarnation
	}
	for _, r := range t.rollouts {
		if r.Phase == "" { // it begins with this view
			continue
		}
		for i := range r.Members {
			t.lose(r, &r.Members[i])
		}
		t.settle(r) // before those that come back, who may be others
		t.meet(r, v)
		t.settle(r)
	}
	return OK
}

// meet has a rollout see who has joined.
func (t *Table) meet(r *Rollout, v *View) {
	for i, p := range v.Members {
		switch m := r.member(p.ID); {
		case m == nil && r.admits() && len(r.Members) < MaxMembers:
			r.Members = append(r.Members, Member{Process: p, Domain: v.domain(i), Wave: r.Last, State: Waiting})
		case m != nil && m.Process != p:
			m.Incarnation = p.Incarnation
			t.comeBack(r, m)
		}
	}
}

// admits reports whether a process that joins becomes a member of the last wave.
func (r *Rollout) admits() bool { return !r.Phase.Ended() && r.Phase != Reverting && r.Wave < r.Last }

// lose notes that a member has died or was removed.
func (t *Table) lose(r *Rollout, m *Member) {
	if t.alive(m.Process) {
		return
	}
	switch m.State {
	case Released, Taken, Applied, Passed, Failed:
		if !r.Phase.Ended() || m.State == Taken {
			m.State, m.Reason = Lost, "died or was removed from the group"
		}
	case Undoing:
		m.State = Lost
	}
}

// comeBack takes a process that has the ID of a member. It does not apply a payload that the process
// before may have, but reverts it.
func (t *Table) comeBack(r *Rollout, m *Member) {
	switch {
	case m.Has != Nothing && (r.Phase == Reverting || r.Phase == Reverted):
		if m.State != Clean {
			m.State = Undoing
		}
	case m.Has == Nothing && m.State == Lost && r.admits():
		m.State, m.Wave, m.Reason = Waiting, r.Last, ""
	}
}

// release begins the next wave.
func (t *Table) release(r *Rollout) {
	r.Wave++
	r.Phase = Applying
	r.Step++
	for i := range r.Members {
		m := &r.Members[i]
		if m.Wave != r.Wave || m.State != Waiting {
			continue
		}
		m.State = Released
		t.lose(r, m)
	}
}

// settle has a rollout do all that it can without another command.
func (t *Table) settle(r *Rollout) {
	for moved := true; moved && !r.Phase.Ended(); {
		moved = t.move(r)
	}
	if r.Phase.Ended() && !slices.ContainsFunc(r.Members, func(m Member) bool { return m.State == Taken }) {
		r.Payload = nil
	}
}

// move does one thing, or reports false if there is nothing to do.
func (t *Table) move(r *Rollout) bool {
	if r.Phase == Reverting {
		if r.waits() {
			return false
		}
		r.end(Reverted, r.Reason)
		return true
	}
	if reason := r.failure(); reason != "" {
		return t.failed(r, reason)
	}
	switch {
	case r.Paused || r.waits():
		return false
	case r.Phase == Applying:
		r.Phase = Holding
		r.Step++
		if r.Hold == 0 {
			r.ask()
		}
	case r.Phase == Holding:
		return false
	case r.Wave < r.Last:
		t.release(r)
	default:
		r.end(Done, "")
	}
	return true
}

// waits reports whether a member has yet to report in this step.
func (r *Rollout) waits() bool {
	for i := range r.Members {
		if r.open(&r.Members[i]) {
			return true
		}
	}
	return false
}

// ask has all members that have the payload be asked for their gates.
func (r *Rollout) ask() {
	r.Phase = Asking
	r.Step++
	for i := range r.Members {
		if m := &r.Members[i]; m.State == Passed {
			m.State = Applied
		}
	}
}

// failed stops or pauses a rollout. It reports false if nothing changes.
func (t *Table) failed(r *Rollout, reason string) bool {
	if r.PauseOnFailure {
		changed := !r.Paused || r.Reason != reason
		if changed {
			r.pause(reason)
		}
		return changed
	}
	if len(r.Revert) > 0 {
		t.revert(r, reason)
	} else {
		r.end(Stopped, reason)
	}
	return true
}

// failure returns why a rollout has failed, or nothing if it has not.
func (r *Rollout) failure() string {
	size, lost := make([]int, r.Last+1), make([]int, r.Last+1)
	for i := range r.Members {
		m := &r.Members[i]
		size[m.Wave]++
		switch {
		case m.State == Failed:
			return fmt.Sprintf("wave %d of %d: %s: %s", m.Wave, r.Last, m.ID, m.Reason)
		case m.State == Lost && r.Deaths:
			return fmt.Sprintf("wave %d of %d: %s %s", m.Wave, r.Last, m.ID, m.Reason)
		case m.State == Lost:
			lost[m.Wave]++
		}
	}
	for wave := 1; wave <= r.Wave; wave++ {
		if 2*lost[wave] > size[wave] {
			return fmt.Sprintf("wave %d of %d: %d of its %d members died or were removed from the group",
				wave, r.Last, lost[wave], size[wave])
		}
	}
	return ""
}

// undo has all members that may have the payload revert it, as an operator asks.
func (t *Table) undo(r *Rollout, v *View) Verdict {
	switch {
	case len(r.Revert) == 0 || v == nil:
		return Wrong
	case r.Phase == Reverting || r.Phase == Reverted:
		return Late
	case v.Number < t.view:
		return Old
	}
	t.see(v)
	t.revert(r, "reverted by an operator")
	t.settle(r)
	return OK
}

// revert has all members that may have the payload revert it.
func (t *Table) revert(r *Rollout, reason string) {
	r.Phase, r.Reason, r.Paused = Reverting, reason, false
	r.Step++
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case m.Has != Nothing:
			m.State = Undoing
			t.lose(r, m)
		case m.State != Lost:
			m.State = Skipped
		}
	}
}

// end ends a rollout.
func (r *Rollout) end(p Phase, reason string) {
	r.Phase, r.Reason, r.Paused = p, reason, false
	r.Step++
	for i := range r.Members {
		if m := &r.Members[i]; m.State == Waiting || m.State == Released {
			m.State = Skipped
		}
	}
}
