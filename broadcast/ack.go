package broadcast

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// AckTree disseminates along a tree and acknowledges back along it: "a process
// sends an acknowledgment to the parent after receiving all acknowledgments
// from the immediate children" (Corrected Trees §4.1).
//
// It is the traditional way to reliability, kept as a baseline: the root knows
// when all have the message, after twice the time; if any process is
// dead, the root only knows that it does not know.
type AckTree struct {
	topology.Tree
}

func (t AckTree) check(c *Config) error {
	if c.Correction != nil {
		return fmt.Errorf("acknowledgments with %s correction: both are there to make a tree reliable, choose one",
			c.Correction)
	}
	return checkTree(t.Tree, c)
}

func (t AckTree) topology() topology.Tree { return t.Tree }

func (t AckTree) hop() protocol.Time { return 0 }

func (t AckTree) states(n int) func(i int) disseminator {
	return slab(n, ackState{}, func(p *ackState) disseminator { return p })
}

type ackState struct {
	treeState
	acked   map[protocol.Rank]struct{} // by rank: a count could not tell one child's second from another's first
	decided protocol.Time              // when the last acknowledgment came
	over    bool
}

func (k *ackState) begin(p *Process, now protocol.Time, m *Message) {
	k.treeState.begin(p, now, m)
	clear(k.acked)
	k.decided = now
	k.over = false
}

func (k *ackState) handle(p *Process, now protocol.Time, m *Message) {
	if m.Phase != protocol.Acknowledgment {
		return
	}
	if parent, _ := p.plan.tree.Parent(m.From); parent != p.rank() {
		return
	}
	if k.acked == nil {
		k.acked = make(map[protocol.Rank]struct{})
	}
	k.acked[m.From] = struct{}{}
	k.decided = now
}

func (k *ackState) next(p *Process, now protocol.Time, a *Action) {
	switch k.treeState.next(p, now, a); {
	case a.Verb != protocol.Done:
	case len(k.acked) < int(p.sent):
		a.Wait()
	case p.rank() != p.plan.root && !k.over:
		k.over = true
		parent, _ := p.plan.tree.Parent(p.rank())
		a.SendQueued(k.decided, protocol.Acknowledgment, parent, Body{Kind: Ack})
	}
}
