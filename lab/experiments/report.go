package experiments

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Report is what the runs of a scenario showed.
type Report struct {
	Coloring           logp.Distribution `json:"coloring"`
	Quiescence         logp.Distribution `json:"quiescence"`
	CorrectionTime     logp.Distribution `json:"correction_time"`
	MaxGap             logp.Distribution `json:"max_gap"`
	MessagesPerProcess logp.Distribution `json:"messages_per_process"`
	// Messages are means per run, by phase.
	Messages  Messages  `json:"messages"`
	Unreached Unreached `json:"unreached"`
	Runs      int       `json:"runs"`
	Seconds   float64   `json:"seconds"`
	// Engine is the engine that did them, Memory what the process has taken.
	Engine string `json:"engine"`
	Memory uint64 `json:"memory_bytes"`

	// Results are the single runs, in order.
	Results []logp.Result `json:"-"`
}

// Messages are mean numbers of messages per run.
type Messages struct {
	Dissemination  float64 `json:"dissemination"`
	Correction     float64 `json:"correction"`
	Acknowledgment float64 `json:"acknowledgment"`
	Total          float64 `json:"total"`
}

// Unreached counts runs that left live processes without the message, and those
// processes.
type Unreached struct {
	Runs      int   `json:"runs"`
	Processes int64 `json:"processes"`
}

// Run runs the scenario on all cores. progress, if not nil, is told how many
// runs are done.
func (s *Scenario) Run(ctx context.Context, progress func(done int)) (*Report, error) {
	started := time.Now()
	engine, worker, err := s.engine()
	if err != nil {
		return nil, err
	}
	results, err := logp.Repeat(ctx, s.Runs, worker, progress)
	if err != nil {
		return nil, err
	}
	report := summarize(results, s.Size)
	report.Engine, report.Seconds, report.Memory = engine, time.Since(started).Seconds(), memory()
	return report, nil
}

// Trace runs one run of the scenario, telling every event.
func (s *Scenario) Trace(run int, tell func(logp.Event)) (logp.Result, error) {
	plan, err := s.Plan()
	if err != nil {
		return logp.Result{}, err
	}
	sim, err := logp.NewSimulator[broadcast.Body](s.params(plan))
	if err != nil {
		return logp.Result{}, err
	}
	sim.Trace = tell
	seed := s.seed(run)
	return sim.Run(logp.Slow(plan.Group().Machines(seed), s.overload(seed)), s.faults(seed))
}

// overload is the overload of one run.
func (s *Scenario) overload(seed uint64) logp.Overload {
	return logp.Overload{Stretch: s.Stretch, Lateness: s.Lateness, O: s.O, Seed: seed}
}

// seed is the seed of one run.
func (s *Scenario) seed(run int) uint64 { return RunSeed(s.Seed, run) }

// RunSeed is the seed of one run: neighboring runs and scenarios must not share
// their randomness.
func RunSeed(seed uint64, run int) uint64 {
	z := seed*0x9e3779b97f4a7c15 + uint64(run)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// faults are the faults of one run.
func (s *Scenario) faults(seed uint64) logp.Faults {
	f := s.Fixed
	f.Dead = s.more(seed)
	if s.Dead > 0 {
		f.Dead = append(logp.RandomDead(s.Size, s.Root, s.Dead, seed), f.Dead...)
	}
	if s.Dying > 0 {
		f.Deaths = append(s.dieOnTheWay(seed), f.Deaths...)
	}
	return f
}

// more are the ranks that are dead from the start of a run beside the random ones.
func (s *Scenario) more(seed uint64) []protocol.Rank {
	if s.Draw == nil {
		return s.Fixed.Dead
	}
	return append(s.Draw(seed), s.Fixed.Dead...)
}

// dieOnTheWay draws processes that die at a random moment.
func (s *Scenario) dieOnTheWay(seed uint64) []logp.Death {
	rng := rand.New(rand.NewPCG(seed, 0xd1e))
	from, until := s.DyingFrom, s.DyingUntil
	if from == 0 && until == 0 { // the first tree's way down and back
		from, until = 1, 2*(2*s.O+s.L)*protocol.Time(math.Ceil(math.Log2(float64(s.Size))))
	}
	deaths := make([]logp.Death, s.Dying)
	for i := range deaths {
		deaths[i] = logp.Death{
			Rank: (s.Root + 1 + protocol.Rank(rng.Int64N(int64(s.Size)-1))) % s.Size,
			At:   from + protocol.Time(rng.Int64N(int64(until-from)+1)),
		}
	}
	return deaths
}

// summarize makes a report of the runs.
func summarize(results []logp.Result, size protocol.Rank) *Report {
	r := &Report{Runs: len(results), Results: results}
	of := func(figure func(*logp.Result) float64) logp.Distribution {
		return logp.Distribute(results, figure)
	}
	r.Coloring = of(func(r *logp.Result) float64 { return float64(r.Coloring) })
	r.Quiescence = of(func(r *logp.Result) float64 { return float64(r.Quiescence) })
	r.CorrectionTime = of(func(r *logp.Result) float64 { return float64(r.CorrectionTime) })
	r.MaxGap = of(func(r *logp.Result) float64 { return float64(r.MaxGap) })
	r.MessagesPerProcess = of(func(r *logp.Result) float64 { return float64(r.Total()) / float64(size) })
	mean := func(phase protocol.Phase) float64 {
		return of(func(r *logp.Result) float64 { return float64(r.Messages[phase]) }).Mean
	}
	r.Messages = Messages{
		Dissemination:  mean(protocol.Dissemination),
		Correction:     mean(protocol.Correction),
		Acknowledgment: mean(protocol.Acknowledgment),
	}
	r.Messages.Total = r.Messages.Dissemination + r.Messages.Correction + r.Messages.Acknowledgment
	for i := range results {
		if results[i].Unreached > 0 {
			r.Unreached.Runs++
			r.Unreached.Processes += int64(results[i].Unreached)
		}
	}
	return r
}
