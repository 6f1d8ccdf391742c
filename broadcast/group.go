package broadcast

import "github.com/pleach-go/pleach/protocol"

// Group is all processes of one plan, for a driver of all of them. Its memory is laid out in rank
// order and used again from one broadcast to the next.
type Group struct {
	plan      Plan
	processes []Process
	machines  []protocol.Machine[Body]
}

// Group makes all processes of the plan.
func (p *Plan) Group() *Group {
	n := int(p.ring.Size)
	g := &Group{plan: *p, processes: make([]Process, n), machines: make([]protocol.Machine[Body], n)}
	disseminators := p.dissemination.states(n)
	var correctors func(i int) corrector
	if p.correction != nil {
		correctors = p.correction.states(n)
	}
	for i := range g.processes {
		proc := &g.processes[i]
		proc.plan, proc.self, proc.dissemination = &g.plan, int32(i), disseminators(i)
		if correctors != nil {
			proc.correction = correctors(i)
		}
		g.machines[i] = proc
	}
	return g
}

// Machines returns the processes in their first state, by rank. The seed
// decides every random choice of this broadcast. The next call takes the same
// machines again.
func (g *Group) Machines(seed uint64) []protocol.Machine[Body] {
	g.plan.seed = seed
	for i := range g.processes {
		g.processes[i].Reset()
	}
	return g.machines
}

// Initiators are the processes that act without having been sent anything.
func (g *Group) Initiators() []protocol.Rank { return []protocol.Rank{g.plan.root} }

// slab makes n copies of a state in one piece of memory, and returns how to get at
// each as the interface I.
func slab[T, I any](n int, state T, as func(*T) I) func(i int) I {
	memory := make([]T, n)
	for i := range memory {
		memory[i] = state
	}
	return func(i int) I { return as(&memory[i]) }
}
