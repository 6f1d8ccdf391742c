package experiments

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Two engines run scenarios. Both show the same, run for run: which one it was
// shows only in time and memory.
const (
	// EngineAuto is sparse where it can be, else events.
	EngineAuto = "auto"
	// EngineEvents drives the machines of every process ([logp.Simulator]).
	EngineEvents = "events"
	// EngineSparse looks only at what the dead change ([logp.Sparse]).
	EngineSparse = "sparse"
)

// runner does one run of a scenario, by its number.
type runner = func(run int) (logp.Result, error)

// Check says what is wrong with the scenario, without running it.
func (s *Scenario) Check() error {
	_, _, err := s.engine()
	return err
}

// engine chooses the engine: its name, and how to make a runner for one core.
func (s *Scenario) engine() (name string, worker func() (runner, error), err error) {
	plan, err := s.Plan()
	if err != nil {
		return "", nil, err
	}
	events := func() (runner, error) { return s.eventsRunner(plan) }
	switch s.Engine {
	case EngineEvents:
		return EngineEvents, events, nil
	case EngineSparse, EngineAuto, "":
	default:
		return "", nil, fmt.Errorf("experiments: unknown engine %q: choose auto, events or sparse", s.Engine)
	}
	sparse, err := s.sparse()
	switch {
	case err == nil:
		return EngineSparse, sparse, nil
	case s.Engine == EngineSparse:
		return "", nil, fmt.Errorf("experiments: engine sparse cannot do that: %w; choose auto or events", err)
	default:
		return EngineEvents, events, nil
	}
}

// eventsRunner makes what one core needs to do runs by events.
func (s *Scenario) eventsRunner(plan *broadcast.Plan) (runner, error) {
	sim, err := logp.NewSimulator[broadcast.Body](s.params(plan))
	if err != nil {
		return nil, err
	}
	group := plan.Group()
	sim.Initiators = group.Initiators()
	return func(run int) (logp.Result, error) {
		seed := s.seed(run)
		return sim.Run(logp.Slow(group.Machines(seed), s.overload(seed)), s.faults(seed))
	}, nil
}

// sparse makes the sparse engine ready, or says why it does not apply.
func (s *Scenario) sparse() (worker func() (runner, error), err error) {
	kind, distance, err := s.SparseRule()
	if err != nil {
		return nil, err
	}
	tree, err := topology.New(s.Shape, s.Order, s.Size, s.Root)
	if err != nil {
		return nil, err
	}
	params := logp.Params{L: s.L, O: s.O, FreeReceive: s.FreeReceive}
	lineage, err := logp.NewLineage(tree, params)
	if err != nil {
		return nil, err
	}
	if _, err := logp.NewSparse(params, lineage, kind, distance); err != nil {
		return nil, err
	}
	return func() (runner, error) {
		sim, err := logp.NewSparse(params, lineage, kind, distance)
		dead := logp.NewDeadSet(s.Size)
		return func(run int) (logp.Result, error) {
			dead.Draw(s.Root, s.Dead, s.seed(run))
			if err := dead.Add(s.more(s.seed(run))...); err != nil {
				return logp.Result{}, err
			}
			return sim.Run(dead)
		}, err
	}, nil
}

// SparseRule is the scenario's correction for the sparse engine, or why that
// does not apply.
func (s *Scenario) SparseRule() (kind logp.SparseRule, distance protocol.Rank, err error) {
	switch {
	case s.Dissemination != "tree" || s.Order != topology.Interleaved || s.Tree != nil:
		return 0, 0, errors.New("the message must spread along an interleaved tree")
	case s.Start != broadcast.Synchronized:
		return 0, 0, errors.New("correction must start everywhere at once")
	case s.Lateness > 0:
		return 0, 0, errors.New("all processes must wake up in time")
	case s.Stretch > 1:
		return 0, 0, errors.New("all processes must be equally fast")
	case s.Dying > 0 || len(s.Fixed.Deaths) > 0:
		return 0, 0, errors.New("the dead must be so from the start")
	}
	correction, err := ParseCorrection(s.Correction, s.Size, s.L, s.O)
	if err != nil {
		return 0, 0, err
	}
	switch c := correction.(type) {
	case broadcast.Checked:
		if c.Throttle == 0 {
			return logp.SparseChecked, 0, nil
		}
	case broadcast.Opportunistic:
		return logp.SparseOpportunistic, c.Distance, nil
	case broadcast.Optimized:
		return logp.SparseOptimized, c.Distance, nil
	case broadcast.Safe:
		return logp.SparseSafe, c.Distance, nil
	}
	return 0, 0, errors.New("correction must be checked, opportunistic, optimized or safe")
}

// finishTime is when the tree is through with dissemination if no process is dead.
func (s *Scenario) finishTime(tree topology.Tree) protocol.Time {
	if s.Order == topology.Interleaved && s.Tree == nil {
		return FinishTime(tree, s.L, s.O)
	}
	return topology.FinishTime(tree, s.L, s.O)
}

// FinishTime is [topology.FinishTime] of an interleaved tree. Of most trees it is read
// off their structure, which saves half a minute for a billion ranks.
func FinishTime(tree topology.Tree, l, o protocol.Time) protocol.Time {
	if lineage, err := logp.NewLineage(tree, logp.Params{L: l, O: o}); err == nil {
		return lineage.FinishTime()
	}
	return topology.FinishTime(tree, l, o)
}

// memory is what the process has taken from the system so far.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
