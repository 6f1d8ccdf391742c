// Package bench compares a query in a job of processes with one DuckDB, with a job without fault
// tolerance and, when a process is killed, with a restart.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/queries"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// Config says what is measured.
type Config struct {
	Members int
	Data    string // the directory of a dataset
	Query   string // its name
	Trials  int
	Seed    uint64 // chooses the processes that are killed
	Deaths  bool   // whether processes are killed
	// Command runs a process of a job, with its work as one argument more.
	Command []string
	// Progress, if not nil, is called with the number of jobs that are done, and of all.
	Progress func(jobs, all int)
}

// Result is what was measured. Times are in milliseconds, medians over the trials.
type Result struct {
	Members int     `json:"members"`
	Scale   float64 `json:"scale"`
	Query   string  `json:"query"`
	Trials  int     `json:"trials"`
	// Alone is one DuckDB with two threads over the same files.
	Alone float64 `json:"duckdb_ms"`
	// Took is the job, and Ratio is it in relation to Alone.
	Took  float64 `json:"ms"`
	Ratio float64 `json:"of_duckdb"`
	// Unprotected is the same job without fault tolerance.
	Unprotected float64  `json:"unprotected_ms"`
	Overhead    float64  `json:"overhead"`
	Killed      []Killed `json:"killed,omitempty"`
}

// Killed is what the death of a process costs in the middle of a stage.
type Killed struct {
	Phase string `json:"phase"`
	// Lost is how much longer the job took than without a death.
	Lost float64 `json:"lost_ms"`
	// Work is the processor time of the dead process in the job.
	Work float64 `json:"work_ms"`
	// Restart is how much longer a job took that was started again.
	Restart float64 `json:"restart_lost_ms"`
	Ratio   float64 `json:"ratio"` // of Lost to Restart
	Equal   bool    `json:"equal"` // all answers were right
}

// plan returns the plan of the query, to know its stages.
func (c *Config) plan(ctx context.Context, data *dataset.Dataset) (*sql.Plan, error) {
	query, err := queries.SQL(c.Query)
	if err != nil {
		return nil, err
	}
	return sql.NewPlan(ctx, query, data, c.Members, "")
}

// Run measures. In each trial every way is run once, one after the other.
func Run(ctx context.Context, c Config) (*Result, error) {
	data, err := dataset.Open(c.Data)
	if err != nil {
		return nil, err
	}
	plan, err := c.plan(ctx, data)
	if err != nil {
		return nil, err
	}
	m := &measurement{Config: c, data: data, rng: rand.New(rand.NewPCG(c.Seed, 0))}
	for _, s := range plan.Stages {
		if c.Deaths && s.To.Kind != sql.ToResult { // The last one takes no time in which to die.
			m.stages = append(m.stages, stageTimes{name: s.Name})
		}
	}
	for range c.Trials {
		if err := m.trial(ctx); err != nil {
			return nil, err
		}
	}
	return m.result(), nil
}

// measurement has what was measured in each trial.
type measurement struct {
	Config
	data                          *dataset.Dataset
	rng                           *rand.Rand
	jobs                          int
	alone, protected, unprotected []time.Duration
	stages                        []stageTimes
}

type stageTimes struct {
	name                  string
	lasts                 []time.Duration // without a death
	killed, restart, work []time.Duration
	different             int // answers
}

// trial runs all ways once.
func (m *measurement) trial(ctx context.Context) error {
	one, err := m.job(ctx, Work{Alone: true}, nil)
	if err != nil {
		return err
	}
	m.alone = append(m.alone, one.took)
	bare, err := m.job(ctx, Work{Unprotected: true}, nil)
	if err != nil {
		return err
	}
	m.unprotected = append(m.unprotected, bare.took)
	whole, err := m.job(ctx, Work{}, nil)
	if err != nil {
		return err
	}
	m.protected = append(m.protected, whole.took)
	for i := range m.stages {
		s := &m.stages[i]
		s.lasts = append(s.lasts, whole.lasts(s.name))
		k := kill{rank: m.rng.IntN(m.Members), Death: Death{s.name, median(s.lasts) / 2}}
		err := m.killed(ctx, s, k)
		for ; errors.Is(err, errAlive) && k.After > 0; err = m.killed(ctx, s, k) {
			k.After /= 2
		}
		if err != nil {
			return fmt.Errorf("rank %d killed %v after the beginning of phase %s: %w", k.rank, k.After, k.Phase, err)
		}
	}
	return nil
}

// killed runs a job in which a process is killed, and one that is started again then.
func (m *measurement) killed(ctx context.Context, s *stageTimes, k kill) error {
	f, err := m.job(ctx, Work{}, &k)
	if err != nil {
		return err
	}
	k.restart = true
	again, err := m.job(ctx, Work{Unprotected: true}, &k)
	if err != nil {
		return err
	}
	s.killed, s.work, s.restart = append(s.killed, f.took), append(s.work, f.work), append(s.restart, again.took)
	for _, rows := range [][][]string{f.rows, again.rows} {
		if tpchdata.Judge(m.data, m.Query, rows) != tpchdata.Equal {
			s.different++
		}
	}
	return nil
}

// job runs a job on the data and the query of the measurement.
func (m *measurement) job(ctx context.Context, w Work, k *kill) (*finished, error) {
	w.Data, w.Query = m.Data, m.Query
	f, err := m.run(ctx, w, k)
	m.jobs++
	if m.Progress != nil {
		m.Progress(m.jobs, (3+2*len(m.stages))*m.Trials)
	}
	return f, err
}

// lasts returns how long a stage's query lasts on the median process.
func (f *finished) lasts(phase string) time.Duration {
	began := make(map[int]time.Time)
	var all []time.Duration
	for _, e := range f.events {
		if name, exchange := strings.CutSuffix(e.Phase, ".exchange"); name == phase {
			if exchange {
				all = append(all, e.At.Sub(began[e.rank]))
			} else {
				began[e.rank] = e.At
			}
		}
	}
	return median(all)
}

func (m *measurement) result() *Result {
	alone, protected, unprotected := median(m.alone), median(m.protected), median(m.unprotected)
	r := &Result{
		Members: m.Members, Scale: m.data.Scale, Query: m.Query, Trials: m.Trials,
		Alone: milliseconds(alone), Took: milliseconds(protected), Ratio: float64(protected) / float64(alone),
		Unprotected: milliseconds(unprotected), Overhead: float64(protected) / float64(unprotected),
	}
	for _, s := range m.stages {
		lost, restart := median(s.killed)-protected, median(s.restart)-unprotected
		r.Killed = append(r.Killed, Killed{
			Phase: s.name, Lost: milliseconds(lost), Work: milliseconds(median(s.work)), Restart: milliseconds(restart),
			Ratio: float64(lost) / float64(restart), Equal: s.different == 0,
		})
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
