package experiments

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Scenario is one kind of broadcast under one kind of faults, to be run many
// times. The words in its fields are those of the command's flags.
type Scenario struct {
	// Size is P; Root starts the broadcast.
	Size, Root protocol.Rank
	// L and O are the LogP parameters.
	L, O protocol.Time
	// FreeReceive lets receives overlap, see [logp.Params].
	FreeReceive bool

	// Dissemination is tree, gossip, ack, big or bfb.
	Dissemination string
	// Shape and Order are the tree's, for tree and ack.
	Shape topology.Shape
	Order topology.Order
	// Tree, if not nil, is laid instead.
	Tree topology.Tree
	// GossipTime is how long to gossip; 0 chooses it by the formulas of
	// Corrected Gossip. GossipRounds, if not 0, gossips by rounds instead. Drain
	// is from the end of gossip to the start of correction; negative means as
	// long as a message in flight takes, L + o.
	GossipTime   protocol.Time
	GossipRounds int32
	Drain        protocol.Time

	// Correction is none, checked, throttled, opportunistic:D, optimized:D,
	// safe:D, failure-proof:F, delayed:D, paced:D or patient:D.
	Correction     string
	Start          broadcast.Start
	EarlyOnlyRelay bool

	// Dead is how many random processes other than the root are dead from the
	// start of each run, Dying how many die at a random moment; Fixed are dead or
	// die in every run.
	Dead, Dying int
	Fixed       logp.Faults
	// DyingFrom and DyingUntil are between which times the dying die; if both are
	// 0, while an acknowledged broadcast goes down and back.
	DyingFrom, DyingUntil protocol.Time
	// Stretch is by how much processes are slower than O on average, see
	// [logp.Overload]. At 0 or 1, none is.
	Stretch float64
	// Lateness is how late processes wake up from waits on average, see
	// [logp.Overload].
	Lateness float64
	// Draw, if not nil, says by a run's seed which other ranks are dead from its start.
	Draw func(seed uint64) []protocol.Rank

	// Runs is how often; Seed decides every random choice.
	Runs int
	Seed uint64
	// Engine is auto, events or sparse; "" is auto.
	Engine string
}

// params are the scenario's LogP parameters for the simulator.
func (s *Scenario) params(plan *broadcast.Plan) logp.Params {
	p := logp.Params{L: s.L, O: s.O, FreeReceive: s.FreeReceive}
	if plan.NeedsDetector() {
		p.Detector = new(protocol.Time) // perfect, and at once
	}
	return p
}

// Plan makes the broadcast's plan.
func (s *Scenario) Plan() (*broadcast.Plan, error) {
	if s.Size < 1 || s.Size > logp.MaxSize {
		return nil, fmt.Errorf("experiments: %d processes: between 1 and %d can be simulated", s.Size, logp.MaxSize)
	}
	if s.L < 0 || s.O < 1 {
		return nil, fmt.Errorf("experiments: L = %d, o = %d: L must not be negative, o at least 1", s.L, s.O)
	}
	correction, err := ParseCorrection(s.Correction, s.Size, s.L, s.O)
	if err != nil {
		return nil, err
	}
	c := broadcast.Config{
		Size: s.Size, Root: s.Root,
		Correction: correction, Start: s.Start, EarlyOnlyRelay: s.EarlyOnlyRelay,
	}
	if err := s.disseminate(&c); err != nil {
		return nil, err
	}
	return broadcast.NewPlan(c)
}

// disseminate fills in how the message spreads, and when a synchronized
// correction starts.
func (s *Scenario) disseminate(c *broadcast.Config) error {
	switch s.Dissemination {
	case "tree", "ack":
		tree, err := s.tree()
		if err != nil {
			return err
		}
		c.Dissemination = broadcast.Tree{Tree: tree}
		if s.Dissemination == "ack" {
			c.Dissemination = broadcast.AckTree{Tree: tree}
		}
		if s.Start == broadcast.Synchronized && c.Correction != nil {
			c.At = s.finishTime(tree)
		}
	case "gossip":
		return s.gossip(c)
	case "big":
		c.Dissemination = broadcast.BinomialGraph{}
	case "bfb":
		c.Dissemination = broadcast.Restarting{}
	default:
		return fmt.Errorf("experiments: unknown dissemination %q: choose tree, gossip, ack, big or bfb", s.Dissemination)
	}
	return nil
}

// tree is the tree that the message spreads along.
func (s *Scenario) tree() (topology.Tree, error) {
	if s.Tree != nil {
		return s.Tree, nil
	}
	return topology.New(s.Shape, s.Order, s.Size, s.Root)
}

// gossip fills in gossip until a time, or for a number of rounds.
func (s *Scenario) gossip(c *broadcast.Config) error {
	if s.GossipRounds > 0 {
		c.Dissemination = broadcast.GossipRounds{Limit: s.GossipRounds}
		return nil
	}
	until, drain := s.GossipTime, s.Drain
	if until == 0 {
		var err error
		until, err = s.BestGossipTime()
		if err != nil {
			return err
		}
	}
	if drain < 0 {
		drain = s.L + s.O
	}
	c.Dissemination = broadcast.Gossip{Until: until, Hop: 2*s.O + s.L}
	if s.Start == broadcast.Synchronized {
		c.At = until + drain
	}
	return nil
}
