package collective

import "fmt"

// Place is a process's place in a world: what a program sees of its engine.
type Comm struct {
	engine *Engine
	ticket *ticket // nil: each call takes the next number
}

// Place is this process's.
func (e *Engine) Comm() Comm { return Comm{engine: e} }

// ticket is the number of a call that is yet to be made.
type ticket struct {
	number uint64
	used   bool
}

// Reserve takes the place of the next call, for one call that is made with what it
// returns, by another goroutine: calls then go on beside each other, though all
// processes must have come to them in the same order.
//
//	later := collective.Reserve(world)
//	go func() { sum, err = collective.Allreduce(ctx, later, mine, op) }()
//
// The call has to be made: the others wait for it.
func Reserve(w Communicator) Comm {
	e := w.comm().engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	return Comm{e, &ticket{number: e.next - 1}}
}

// take returns the number of the call that is made now.
func (p Comm) take() (uint64, error) {
	e, t := p.engine, p.ticket
	switch {
	case t == nil:
		e.next++
		return e.next - 1, nil
	case t.used:
		return 0, fmt.Errorf("collective: call %d was reserved once, and is made twice", t.number)
	}
	t.used = true
	return t.number, nil
}

func (p Comm) comm() Comm { return p }

// Rank is this process's.
func (p Comm) Rank() int { return p.engine.config.Rank }

// Size is the number of tasks, which is that of the processes at the start.
func (p Comm) Size() int { return p.engine.config.Size }

// Owner is the rank of who does a task's part now: at first the rank of the same
// number, and a survivor after that one's death.
func (p Comm) Owner(task int) int {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return p.engine.owner(task)
}

// Tasks returns the tasks that this process owns now, its own among them.
func (p Comm) Tasks() []int {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return p.engine.ownedBy(p.engine.config.Rank)
}

// Failed returns the ranks that are not in the view any more.
func (p Comm) Failed() []int {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return p.engine.failedRanks()
}
