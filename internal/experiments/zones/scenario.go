package zones

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The systems that are compared.
const (
	// Fleet is zones and a backbone.
	Fleet = "zones"
	// Flat is one group of all processes, by a corrected tree that knows no zones.
	Flat = "flat"
	// Gossip is the same by corrected gossip.
	Gossip = "gossip"
)

// Scenario is one kind of broadcast to a fleet, to be run many times.
type Scenario struct {
	Layout
	// Origin starts the broadcast.
	Origin protocol.Rank
	// L and O are latency and overhead in a zone, FarL and FarO those between zones.
	L, O, FarL, FarO protocol.Time
	// Shape is that of trees in a zone, BackboneShape that of the tree over zones,
	// FlatShape that of the tree over all processes.
	Shape, BackboneShape, FlatShape topology.Shape
	// Correction is that of zones and of the flat tree, as in [experiments.Scenario]. If
	// empty, it is paced, with the delay that an answer takes if no process is dead.
	// Gossip's always is.
	Correction string
	Start      broadcast.Start
	// Takeover is how long each delegate waits for the one before it. If zero, as long
	// as the backbone and a zone take if no process is dead.
	Takeover protocol.Time

	Faults

	// Runs is how often; Seed decides every random choice.
	Runs int
	Seed uint64
	// Engine is auto, events or sparse, as in [experiments.Scenario].
	Engine string
}

// MaxEvents is the largest fleet of which every message is simulated.
const MaxEvents = 1 << 24

// Check says what is wrong with the scenario, without running it. It fills in defaults.
func (s *Scenario) Check() error {
	if err := cmp.Or(s.check(), s.checkFaults()); err != nil {
		return err
	}
	if _, err := logp.NewSimulator[Body](s.network()); err != nil {
		return err
	}
	if err := s.setTakeover(); err != nil {
		return err
	}
	if _, err := s.plans(); err != nil {
		return err
	}
	if _, err := s.sparse(); err == nil {
		return nil
	} else if s.Engine == experiments.EngineSparse {
		return fmt.Errorf("zones: engine sparse cannot do that: %w", err)
	} else if s.Size() > MaxEvents {
		return fmt.Errorf("zones: more than %d processes take engine sparse, which cannot do that: %w", MaxEvents, err)
	}
	return nil
}

func (s *Scenario) setTakeover() error {
	if s.Takeover != 0 {
		return nil
	}
	zone, err := topology.New(s.Shape, topology.Interleaved, s.Members, 0)
	if err != nil {
		return err
	}
	zones, err := topology.New(s.BackboneShape, topology.Interleaved, s.Zones, 0)
	if err != nil {
		return err
	}
	s.Takeover = s.backboneTime(zones) + topology.FinishTime(zone, s.L, s.O)
	return nil
}

// network is the LogP network of the fleet.
func (s *Scenario) network() logp.Params {
	return logp.Params{L: s.L, O: s.O, Zones: &logp.Zones{L: s.FarL, O: s.FarO}}
}

// correction is the correction for a ring of that size, in a network and with a tree that
// takes so long.
func (s *Scenario) correction(size protocol.Rank, l, o, finish protocol.Time) (broadcast.Correction, error) {
	if s.Correction == "" {
		return broadcast.Delayed{Delay: finish + 2*o + l, Paced: true}, nil
	}
	return experiments.ParseCorrection(s.Correction, size, l, o)
}

// engine is the engine that runs the fleet.
func (s *Scenario) engine() string {
	if s.Engine == experiments.EngineEvents {
		return s.Engine
	}
	if _, err := s.sparse(); err != nil {
		return experiments.EngineEvents
	}
	return experiments.EngineSparse
}

// sparse is the correction for the sparse engine, or why that does not apply.
func (s *Scenario) sparse() (rule sparseRule, err error) {
	switch {
	case s.Start != broadcast.Synchronized:
		return rule, errors.New("correction must start everywhere in a zone at once: choose a synchronized start and checked, opportunistic, optimized or safe correction")
	case s.Origin%s.Members != 0:
		return rule, errors.New("the origin must lead its zone")
	case len(s.Deaths) > 0:
		return rule, errors.New("the dead must be so from the start")
	}
	inZone := s.flatScenario()
	inZone.Size, inZone.Root, inZone.Shape, inZone.L, inZone.O = s.Members, 0, s.Shape, s.L, s.O
	rule.kind, rule.distance, err = inZone.SparseRule()
	return rule, err
}

type sparseRule struct {
	kind     logp.SparseRule
	distance protocol.Rank
}
