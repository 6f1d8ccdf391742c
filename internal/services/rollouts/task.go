package rollouts

// Kind is what a member does for a rollout.
type Kind int

// The kinds of tasks.
const (
	Begin    Kind = iota + 1 // propose Take
	Put                      // apply the payload, and propose Report
	Ask                      // ask the gate, and propose Answer
	TakeBack                 // apply the revert, and propose Undone
)

// Task is what a member has to do next for a rollout.
type Task struct {
	Kind    Kind
	Rollout *Rollout
	Step    uint64
}

// Command returns the command that reports a task, with the error that it has ended with.
func (k *Task) Command(by Process, failure string) Command {
	op := map[Kind]Op{Begin: Take, Put: Report, Ask: Answer, TakeBack: Undone}[k.Kind]
	return Command{Op: op, ID: k.Rollout.ID, By: by, Error: failure, Step: k.Step}
}

// Task returns what a process has to do next for a rollout. A process does one task of a rollout at
// a time, and calls Task again when its report was applied.
func (t *Table) Task(id string, self Process) (Task, bool) {
	r := t.find(id)
	if r == nil {
		return Task{}, false
	}
	m := r.member(self.ID)
	if m == nil || m.Process != self {
		return Task{}, false
	}
	k := Task{Rollout: r, Step: r.Step}
	switch {
	case r.takes(m):
		k.Kind = Begin
	case m.State == Taken:
		k.Kind = Put
	case m.State == Applied && r.Phase == Asking:
		k.Kind = Ask
	case m.State == Undoing:
		k.Kind = TakeBack
	default:
		return Task{}, false
	}
	return k, true
}

// misses reports whether a member that may have the payload is to revert it when it comes back.
func (r *Rollout) misses() bool {
	for i := range r.Members {
		if m := &r.Members[i]; m.Has != Nothing && m.State != Clean {
			return true
		}
	}
	return false
}
