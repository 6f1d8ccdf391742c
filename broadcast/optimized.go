package broadcast

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Optimized is opportunistic correction that leaves out what it believes
// another process covers: "process 19 receives a correction message from
// process 23. With d = 8, 23 surely sends messages to processes 22, …, 15, so
// 19 has to send only to processes 14, …, 11" (Corrected Trees §3.3).
//
// The rule is not safe from d = 3 on, although the paper says so: two messages
// may cross, each process then relies on the other, and both leave out the same
// ranks. It is kept to reproduce the paper. [Safe] saves about as much and is
// safe.
type Optimized struct {
	// Distance is d, per side.
	Distance protocol.Rank
}

// String returns the correction as flags spell it.
func (o Optimized) String() string { return fmt.Sprintf("optimized:%d", o.Distance) }

func (o Optimized) check(*Config) error { return checkDistance(o.Distance) }

func (o Optimized) lateDuty() bool { return false }

func (o Optimized) states(n int) func(i int) corrector {
	state := optimizedState{opportunisticState{distance: clamp(o.Distance)}}
	return slab(n, state, func(p *optimizedState) corrector { return p })
}

type optimizedState struct{ opportunisticState }

// handle takes a message from distance x: its sender covers everything on its own
// side, and the first d − x ranks on the other.
func (o *optimizedState) handle(p *Process, _ protocol.Time, m *Message) {
	s := heardFrom(m.Body.Kind)
	x := p.distance(s, m.From)
	o.sent[s] = o.bound[s]
	o.sent[s.other()] = max(o.sent[s.other()], o.distance-x)
}
