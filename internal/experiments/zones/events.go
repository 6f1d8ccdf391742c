package zones

import (
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// result is what one run showed.
type result struct {
	logp.Result
	cutOff protocol.Rank
}

// runner does one run, by its number.
type runner = func(run int) (result, error)

// eventsRunner makes what one core needs to drive the machines of all processes.
func (s *Scenario) eventsRunner() (runner, error) {
	plans, err := s.plans()
	if err != nil {
		return nil, err
	}
	params := s.network()
	params.Zones.Of = s.zoneOf()
	sim, err := logp.NewSimulator[Body](params)
	if err != nil {
		return nil, err
	}
	sim.Initiators = []protocol.Rank{s.Origin}
	processes, machines := s.processes(&run{plans: plans})
	dead := logp.NewDeadSet(s.Size())
	return func(n int) (result, error) {
		if err := s.draw(dead, experiments.RunSeed(s.Seed, n)); err != nil {
			return result{}, err
		}
		for i := range processes {
			processes[i].reset()
		}
		r, err := sim.Run(machines, logp.Faults{Dead: dead.Ranks(), Deaths: s.Deaths})
		return result{r, s.cutOff(dead)}, err
	}, nil
}

// processes makes all processes, and the same as machines.
func (s *Scenario) processes(shared *run) ([]Process, []protocol.Machine[Body]) {
	processes := make([]Process, s.Size())
	machines := make([]protocol.Machine[Body], s.Size())
	for i := range processes {
		r := protocol.Rank(i)
		processes[i] = Process{run: shared, zone: r / s.Members, member: r % s.Members}
		machines[i] = &processes[i]
	}
	return processes, machines
}
