package broadcast

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// GossipRounds disseminates by chance for a number of rounds, for networks
// without a common clock: "each message carries the current gossip round, which
// gets incremented each time a message is sent. When a node receives a message
// with the gossip round equal to the predefined limit, it enters the correction
// phase" (Corrected Trees §4.4).
type GossipRounds struct {
	// Limit is the round after which a process stops gossiping.
	Limit int32
}

func (g GossipRounds) check(c *Config) error {
	switch {
	case g.Limit < 1:
		return fmt.Errorf("gossip for %d rounds reaches no process", g.Limit)
	case c.Start == Synchronized:
		return errors.New("gossip for a number of rounds ends at another time on each process: " +
			"choose an overlapped start, or gossip until a time")
	}
	return nil
}

func (g GossipRounds) hop() protocol.Time { return 0 }

func (g GossipRounds) states(n int) func(i int) disseminator {
	return slab(n, roundsState{limit: g.Limit}, func(p *roundsState) disseminator { return p })
}

type roundsState struct {
	limit, round int32
	rng          rng
}

func (g *roundsState) begin(p *Process, _ protocol.Time, m *Message) {
	g.rng = newRNG(p.plan.seed, p.rank())
	g.round = m.Body.Clock
}

// handle stops a process that learns that others have reached the limit.
func (g *roundsState) handle(_ *Process, _ protocol.Time, m *Message) {
	if m.Body.Clock >= g.limit {
		g.round = g.limit
	}
}

func (g *roundsState) next(p *Process, _ protocol.Time, a *Action) {
	if g.round >= g.limit || p.plan.ring.Size == 1 {
		a.Done()
		return
	}
	g.round++
	a.Send(protocol.Dissemination, g.rng.other(p), Body{Kind: Payload, Clock: g.round})
}
