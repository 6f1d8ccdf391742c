package broadcast

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Gossip disseminates by chance until a fixed time: "each colored node sends a
// message to some other random node every O units of time. Messages carry a
// virtual time-counter, so that all the (colored) nodes stop sending new
// messages at time T" (Corrected Gossip §III-A).
//
// It promises nothing without correction; with a long enough T all are colored with high
// probability, dead or not. Correction makes it certain.
type Gossip struct {
	// Until is T: no send starts at or after it.
	Until protocol.Time
	// Hop is what a receiver adds to the clock it is sent, the time one message
	// takes. 0 means that the driver's clock is common to all processes.
	Hop protocol.Time
}

func (g Gossip) check(c *Config) error {
	switch {
	case g.Until < 1:
		return fmt.Errorf("gossip until time %d reaches no process", g.Until)
	case c.Correction != nil && c.Start == Overlapped:
		return errors.New("gossip until a time stops everywhere at once, so correction starts everywhere at once: " +
			"choose a synchronized start, or gossip for a number of rounds")
	case c.Start == Synchronized && c.At < g.Until:
		return fmt.Errorf("correction at %d would start before gossip ends at %d", c.At, g.Until)
	}
	return nil
}

func (g Gossip) hop() protocol.Time { return g.Hop }

func (g Gossip) states(n int) func(i int) disseminator {
	return slab(n, gossipState{until: g.Until}, func(p *gossipState) disseminator { return p })
}

type gossipState struct {
	until protocol.Time
	rng   rng
}

func (g *gossipState) begin(p *Process, _ protocol.Time, _ *Message) {
	g.rng = newRNG(p.plan.seed, p.rank())
}

func (g *gossipState) handle(*Process, protocol.Time, *Message) {}

func (g *gossipState) next(p *Process, now protocol.Time, a *Action) {
	clock := now
	if p.plan.hop != 0 {
		clock -= p.began
	}
	if clock >= g.until || p.plan.ring.Size == 1 {
		a.Done()
		return
	}
	a.Send(protocol.Dissemination, g.rng.other(p), Body{Kind: Payload, Clock: int32(clock)})
}
