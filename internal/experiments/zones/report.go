package zones

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/logp"
)

// Report is what the runs of one system showed.
type Report struct {
	// System is zones, flat or gossip, Engine how it was simulated: events, sparse, or
	// model, which is formulas. Those of the flat group know no dead.
	System string `json:"system"`
	Engine string `json:"engine"`
	// Coloring is when the last live process has the message, Quiescence when the last
	// message is over.
	Coloring   logp.Distribution `json:"coloring"`
	Quiescence logp.Distribution `json:"quiescence"`
	// WANMessages are those between zones.
	WANMessages        logp.Distribution `json:"wan_messages"`
	MessagesPerProcess logp.Distribution `json:"messages_per_process"`
	// Unreached counts live processes without the message, CutOff those of them, in all
	// runs, whose zone has no live delegate.
	Unreached experiments.Unreached `json:"unreached"`
	CutOff    int64                 `json:"cut_off"`
	Runs      int                   `json:"runs"`
	Seconds   float64               `json:"seconds"`
}

// EngineModel is no engine, but formulas for what is too large to be simulated.
const EngineModel = "model"

// Run runs a system on all cores. progress, if not nil, is told how many runs are done.
func (s *Scenario) Run(ctx context.Context, system string, progress func(done int)) (*Report, error) {
	started := time.Now()
	report, err := s.run(ctx, system, progress)
	if err != nil {
		return nil, err
	}
	report.Seconds = time.Since(started).Seconds()
	return report, nil
}

func (s *Scenario) run(ctx context.Context, system string, progress func(done int)) (*Report, error) {
	switch system {
	case Flat:
		return s.runFlat(ctx, progress)
	case Gossip:
		return s.runGossip(ctx, progress)
	}
	engine, worker := s.engine(), s.eventsRunner
	if engine == experiments.EngineSparse {
		worker = s.sparseRunner
	}
	results, err := logp.Repeat(ctx, s.Runs, worker, progress)
	if err != nil {
		return nil, err
	}
	return s.report(system, engine, results), nil
}

// report sums up the runs of a system.
func (s *Scenario) report(system, engine string, results []result) *Report {
	of := func(figure func(*result) float64) logp.Distribution { return logp.Distribute(results, figure) }
	r := &Report{
		System: system, Engine: engine, Runs: len(results),
		Coloring:           of(func(r *result) float64 { return float64(r.Coloring) }),
		Quiescence:         of(func(r *result) float64 { return float64(r.Quiescence) }),
		WANMessages:        of(func(r *result) float64 { return float64(r.BetweenZones) }),
		MessagesPerProcess: of(func(r *result) float64 { return float64(r.Total()) / float64(s.Size()) }),
	}
	for i := range results {
		r.CutOff += int64(results[i].cutOff)
		if results[i].Unreached > 0 {
			r.Unreached.Runs++
			r.Unreached.Processes += int64(results[i].Unreached)
		}
	}
	return r
}
