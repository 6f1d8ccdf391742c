package rollouts

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pleach-go/pleach/protocol"
)

// Op is what a command does.
type Op string

// The operations.
const (
	Start  Op = "start"
	Seen   Op = "seen" // a member has a view
	Take   Op = "take" // a member is about to apply the payload
	Report Op = "applied"
	Answer Op = "answer" // of a gate
	Undone Op = "undone" // a member has reverted the payload
	Tick   Op = "tick"   // the time of a step is over
	Pause  Op = "pause"
	Resume Op = "resume"
	Stop   Op = "stop"
	Undo   Op = "revert" // all members that may have the payload are to revert it
)

// Command is a command of a table.
type Command struct {
	Op Op     `json:"op"`
	ID string `json:"id,omitempty"` // of the rollout
	// Spec is that of [Start], and View that of Start, Seen and Undo.
	Spec *Spec `json:"spec,omitempty"`
	View *View `json:"view,omitempty"`
	// By is the member that takes, reports or answers, and Error why it could not, or why its gate
	// has failed.
	By    Process `json:"by,omitzero"`
	Error string  `json:"error,omitempty"`
	Step  uint64  `json:"step,omitempty"` // of Answer and Tick
}

// Encode returns the command as bytes.
func (c *Command) Encode() ([]byte, error) { return json.Marshal(c) }

// Verdict is the result of a command.
type Verdict byte

// The verdicts.
const (
	OK      Verdict = iota + 1
	Late            // the rollout is no longer where the command is for
	Unknown         // there is no such rollout
	Exists          // there is a rollout of that ID
	Full            // as many rollouts are on their way as may be
	Old             // the command's view is not the newest
	Wrong           // the spec is wrong, or there is nothing to revert with
)

// Apply applies a command, and reports whether the state has changed.
func (t *Table) Apply(b []byte) (v Verdict, changed bool) {
	var c Command
	if json.Unmarshal(b, &c) != nil {
		return Wrong, false
	}
	v = t.apply(&c)
	return v, v == OK
}

func (t *Table) apply(c *Command) Verdict {
	switch c.Op {
	case Start:
		return t.start(c)
	case Seen:
		return t.see(c.View)
	}
	r := t.find(c.ID)
	if r == nil {
		return Unknown
	}
	switch c.Op {
	case Take, Report, Answer, Undone:
		return t.report(r, c)
	case Undo:
		return t.undo(r, c.View)
	default:
		return t.operate(r, c)
	}
}

// start begins a rollout.
func (t *Table) start(c *Command) Verdict {
	s, v := c.Spec, c.View
	switch {
	case s == nil || v == nil || s.ID == "" || max(len(s.ID), len(s.Name), len(s.Gate)) > MaxName ||
		len(v.Members) == 0 || len(v.Members) > MaxMembers || len(s.Payload)+len(s.Revert) > MaxPayload ||
		s.Hold < 0 || s.Timeout <= 0 || CheckWaves(s.Waves) != nil:
		return Wrong
	case v.Number < t.view:
		return Old
	case t.find(s.ID) != nil:
		return Exists
	case !t.makeRoom():
		return Full
	}
	r := &Rollout{Spec: *s}
	r.Members, r.Last = assign(v, s.Waves, s.ByDomain)
	t.rollouts = append(t.rollouts, r)
	t.see(v)
	t.release(r)
	t.settle(r)
	return OK
}

// makeRoom forgets the oldest rollout that has ended if there are too many.
func (t *Table) makeRoom() bool {
	if len(t.rollouts) < MaxRollouts {
		return true
	}
	i := slices.IndexFunc(t.rollouts, func(r *Rollout) bool { return r.Phase.Ended() })
	if i >= 0 {
		t.rollouts = slices.Delete(t.rollouts, i, i+1)
	}
	return i >= 0
}

// report applies what a member says of its part.
func (t *Table) report(r *Rollout, c *Command) Verdict {
	m := r.member(c.By.ID)
	if m == nil || m.Process != c.By {
		return Late
	}
	reason := c.Error[:min(len(c.Error), MaxReason)]
	switch {
	case c.Op == Take && r.takes(m):
		m.State, m.Has = Taken, Some
	case c.Op == Report && m.Has == Some:
		m.applied(reason)
	case c.Op == Answer && r.Phase == Asking && c.Step == r.Step && m.State == Applied:
		m.State = Passed
		m.fail(reason)
	case c.Op == Undone && m.State == Undoing:
		m.State = Clean
		if reason != "" {
			m.State, m.Reason = Unchanged, reason
		}
	default:
		return Late
	}
	t.settle(r)
	return OK
}

// takes reports whether a member may begin to apply the payload.
func (r *Rollout) takes(m *Member) bool {
	return r.Phase == Applying && !r.Paused && m.State == Released
}

// applied notes that a member has applied the payload, or why it could not. The rollout may have
// failed the member meanwhile, because it took too long.
func (m *Member) applied(reason string) {
	m.Has = All
	if reason != "" {
		m.Has = Broken
	}
	if m.State == Taken {
		m.State = Applied
		m.fail(reason)
	}
}

// fail fails a member if there is a reason.
func (m *Member) fail(reason string) {
	if reason != "" {
		m.State, m.Reason = Failed, reason
	}
}

// operate applies what an operator or a clock asks of a rollout.
func (t *Table) operate(r *Rollout, c *Command) Verdict {
	running := !r.Phase.Ended() && r.Phase != Reverting
	switch {
	case c.Op == Tick && c.Step == r.Step && !r.Paused && !r.Phase.Ended():
		t.tick(r)
	case c.Op == Pause && running && !r.Paused:
		r.pause("paused by an operator")
	case c.Op == Resume && running && r.Paused:
		r.resume()
	case c.Op == Stop && running:
		r.end(Stopped, "stopped by an operator")
	default:
		return Late
	}
	t.settle(r)
	return OK
}

// pause has no member begin. Answers of gates come too late.
func (r *Rollout) pause(reason string) {
	r.Paused, r.Reason = true, reason
	r.Step++
	if r.Phase == Asking {
		r.Phase = Holding
	}
}

// resume has a paused rollout continue. The hold of its wave begins again, then all members that
// have the payload are asked again, also those whose gates had failed. The lost ones and those that
// could not apply the payload count no longer.
func (r *Rollout) resume() {
	r.Paused, r.Reason, r.Phase = false, "", Applying
	r.Step++
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case m.State == Lost, m.State == Failed && m.Has == Broken:
			m.State = Skipped
		case m.State == Failed:
			m.State = map[Possession]State{Nothing: Released, Some: Taken, All: Applied}[m.Has]
			m.Reason = ""
		}
	}
}

// tick has the time of a step be over.
func (t *Table) tick(r *Rollout) {
	switch r.Phase {
	case Holding:
		r.ask()
	case Applying, Asking:
		for i := range r.Members {
			if m := &r.Members[i]; r.open(m) {
				m.fail("did not report within " + seconds(r.Timeout))
			}
		}
	case Reverting:
		r.end(Reverted, r.Reason+"; some members have not reported within "+seconds(r.Timeout))
	}
}

// open reports whether a member has yet to report in this step.
func (r *Rollout) open(m *Member) bool {
	switch r.Phase {
	case Applying:
		return m.State == Released || m.State == Taken
	case Asking:
		return m.State == Applied
	case Reverting:
		return m.State == Undoing
	}
	return false
}

// seconds returns a time for people.
func seconds(t protocol.Time) string { return strconv.FormatFloat(float64(t)/1e9, 'f', -1, 64) + " s" }
