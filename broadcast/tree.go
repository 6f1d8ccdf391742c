package broadcast

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Tree disseminates along a tree: every process sends to its children, in the
// tree's order, as soon as it is colored (Corrected Trees §3.2).
//
// It promises nothing once a process is dead: "a failure of any non-leaf process
// in the tree results in all its descendants remaining uncolored" (§2.1). What
// it is for is speed; correction closes the gaps.
type Tree struct {
	topology.Tree
}

func (t Tree) check(c *Config) error { return checkTree(t.Tree, c) }

func (t Tree) topology() topology.Tree { return t.Tree }

// checkTree checks that a tree spans the group.
func checkTree(t topology.Tree, c *Config) error {
	switch {
	case t == nil:
		return errors.New("a tree dissemination needs a tree")
	case t.Size() != c.Size || t.Root() != c.Root:
		return fmt.Errorf("the tree spans %d processes from root %d, the broadcast %d from root %d",
			t.Size(), t.Root(), c.Size, c.Root)
	}
	return nil
}

func (t Tree) hop() protocol.Time { return 0 }

func (t Tree) states(n int) func(i int) disseminator {
	return slab(n, treeState{}, func(p *treeState) disseminator { return p })
}

type treeState struct{}

func (t *treeState) begin(*Process, protocol.Time, *Message) {}

// handle ignores later copies: the process is colored.
func (t *treeState) handle(*Process, protocol.Time, *Message) {}

func (t *treeState) next(p *Process, _ protocol.Time, a *Action) {
	child, ok := p.plan.tree.Child(p.rank(), int(p.sent))
	if !ok {
		a.Done()
		return
	}
	p.sent++
	p.passOn(child, a)
}

// passOn sends the payload to a rank chosen when the process was colored.
func (p *Process) passOn(to protocol.Rank, a *Action) {
	a.SendQueued(p.began, protocol.Dissemination, to, Body{Kind: Payload})
}
