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
// when all have the message, after twice the time; when anybody but a leaf's
// child is dead, it only knows that it does not.
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

func (t AckTree) parts(n int) func(i int) disseminator {
	return slab(n, ackPart{}, func(p *ackPart) disseminator { return p })
}

type ackPart struct {
	treePart
	acked   map[protocol.Rank]struct{} // by whom: a count could not tell one child's second from another's first
	decided protocol.Time              // when the last acknowledgment came
	over    bool
}

func (k *ackPart) begin(p *Process, now protocol.Time, m *Message) {
	k.treePart.begin(p, now, m)
	clear(k.acked)
	k.decided = now
	k.over = false
}

func (k *ackPart) hear(p *Process, now protocol.Time, m *Message) {
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

func (k *ackPart) next(p *Process, now protocol.Time, a *Action) {
	switch k.treePart.next(p, now, a); {
	case a.Verb != protocol.Done:
	case len(k.acked) < int(p.sent):
		a.Wait()
	case p.rank() != p.plan.root && !k.over:
		k.over = true
		parent, _ := p.plan.tree.Parent(p.rank())
		a.SendQueued(k.decided, protocol.Acknowledgment, parent, Body{Kind: Ack})
	}
}
