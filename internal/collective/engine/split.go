package engine

import "fmt"

// Split derives the communicator of some tasks, this process's own among them, which are in
// ascending order and share a color. Task i of it is the i-th of them, and its first owner is
// that task's first owner, whether it lives or not: the survivors among them take it over.
// Every process derives its communicator before it sends a message of the call, which ends
// when all have: then none gets a message of a communicator that it does not have.
//
// It begins with the first view, because the owners of its tasks depend on all failures.
func (t *Task) Split(tasks []int, color int) (Comm, error) {
	e := t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return Comm{}, e.err
	case len(e.comms.nested) >= maxNested:
		return Comm{}, fmt.Errorf("collective: Split: %d communicators were derived from this one already", maxNested)
	}
	id := deriveContextID(e.comms.contextID, t.call.number, uint64(color))
	return e.nest(id, tasks, e.config.View).Comm(), nil
}
