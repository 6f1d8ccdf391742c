package broadcast

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Safe is opportunistic correction that leaves out only what another process
// covers for certain: a process that hears from a side has nothing left to do on
// that side. It colors whatever [Opportunistic] colors with the same distance (but
// where early processes only relay: which are early then depends on timing).
//
// Why it is safe. Say i stops sending left because it heard from j = i − x. As
// j sends to the right in order of distance and never leaves one out, it has
// sent to all ranks between j and i before. What lies left of j, up to i − d, is
// among j's own left duties, which j may leave only to a process
// further left. So left duties travel left only, each step covers what it
// passes, and after at most d steps the chain has passed i − d: no process
// relies on one that relies on it. (The paper's rule also hands duties to the
// other side, and there two processes can rely on each other: see [Optimized].)
type Safe struct {
	// Distance is d, per side.
	Distance protocol.Rank
}

// String returns the correction as flags spell it.
func (o Safe) String() string { return fmt.Sprintf("safe:%d", o.Distance) }

func (o Safe) check(*Config) error { return checkDistance(o.Distance) }

func (o Safe) lateDuty() bool { return false }

func (o Safe) states(n int) func(i int) corrector {
	state := safeState{opportunisticState{distance: clamp(o.Distance)}}
	return slab(n, state, func(p *safeState) corrector { return p })
}

type safeState struct{ opportunisticState }

func (o *safeState) handle(_ *Process, _ protocol.Time, m *Message) {
	s := heardFrom(m.Body.Kind)
	o.sent[s] = o.bound[s]
}
