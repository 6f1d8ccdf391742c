package broadcast

import (
	"fmt"
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// BinomialGraph disseminates redundantly: a colored process sends to all its
// neighbors p + 2^x (mod P) in a binomial graph (Corrected Gossip §IV-B3, BIG).
//
// It tolerates any log2(P) − 1 dead processes without correction, at log2(P)
// messages per process: the redundant baseline.
type BinomialGraph struct{}

func (BinomialGraph) check(c *Config) error {
	if c.Correction != nil {
		return fmt.Errorf("a binomial graph with %s correction: the graph is already redundant, choose one",
			c.Correction)
	}
	return nil
}

func (BinomialGraph) hop() protocol.Time { return 0 }

func (BinomialGraph) states(n int) func(i int) disseminator {
	return slab(n, graphState{}, func(p *graphState) disseminator { return p })
}

type graphState struct {
	step distance // distance to the next neighbor
	left int8     // neighbors still to send to
}

// begin starts with the children a binomial tree would give the process, half
// as far away as the sender and nearer, and leaves the redundant neighbors for
// later: so no process is colored later than by a binomial tree.
func (g *graphState) begin(p *Process, _ protocol.Time, m *Message) {
	g.left = int8(bits.Len32(uint32(p.plan.circle() - 1)))
	g.step = 0
	if m.From != protocol.NoRank {
		g.step = p.distance(left, m.From) / 2
	}
}

func (g *graphState) handle(*Process, protocol.Time, *Message) {}

func (g *graphState) next(p *Process, _ protocol.Time, a *Action) {
	if g.left == 0 {
		a.Done()
		return
	}
	if g.step == 0 {
		g.step = 1 << bits.Len32(uint32(p.plan.circle()-1)) / 2
	}
	p.passOn(p.neighbor(right, g.step), a)
	g.step /= 2
	g.left--
}
