package reproduce

import (
	"context"
	"sync"

	"github.com/pleach-go/pleach/lab/chart"
)

// The papers, as claims cite them.
const (
	trees      = "Corrected Trees (PPoPP 2019)"
	gossip     = "Corrected Gossip (IPDPS 2017)"
	membership = "Scalable Membership (thesis, 2006)"
	// leftOpen is not a paper: what they leave open is answered there.
	leftOpen = "Left open"
)

// Experiment is one figure, table or paragraph of a paper.
type Experiment struct {
	// Name is what the command line calls it: ct-figure-8.
	Name string
	// Paper is where it is from, and Title what it shows.
	Paper, Title string
	// About is how it is done here, and what differs from the paper.
	About string
	// Source is where its numbers come from.
	Source *Source

	charts func(Data) []chart.Chart
	claims func(Data) []Claim
}

// Charts draws the experiment.
func (e *Experiment) Charts(d Data) []chart.Chart { return e.charts(d) }

// Claims judges what the paper states.
func (e *Experiment) Claims(d Data) []Claim {
	claims := e.claims(d)
	for i := range claims {
		c := &claims[i]
		c.Paper, c.Experiment, c.Seed = e.Paper+", "+c.where, e.Name, e.Source.Seed
	}
	return claims
}

// Source is a measurement.
type Source struct {
	// Name is that of its files.
	Name string
	// Seed decides every random choice.
	Seed uint64
	// Tables are the names of what it leaves.
	Tables []string
	// Cost is about how many seconds of one core it takes, by size: what is
	// known of the time left.
	Cost [sizes]float64

	measure func(*job) (Data, error)
}

// Options say how to measure.
type Options struct {
	Size Size
	// Member and Survivor are the commands that start one member of a group of
	// real processes, for what is measured on those. See lab/bench.
	Member, Survivor []string
	// Task starts one process of a job of collectives. See [experiments.Overheads].
	Task []string
	// Progress, if not nil, is told which share of the source is done: one call
	// at a time, and never less than before.
	Progress func(share float64)

	keep keeper // nil: nothing is kept
}

// Measure does the runs.
func (s *Source) Measure(ctx context.Context, o Options) (Data, error) {
	if tell := o.Progress; tell != nil {
		var mu sync.Mutex
		most := 0.0
		o.Progress = func(share float64) {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, share)
			tell(most)
		}
	}
	return s.measure(&job{ctx: ctx, Options: o, seed: s.Seed})
}

// Size is how much of a measurement is done.
type Size int

// The sizes.
const (
	// Tiny only shows that everything works.
	Tiny Size = iota
	// Quick is enough for most claims.
	Quick
	// Full is as much as fits half an hour.
	Full
	sizes
)

// String returns the size's name.
func (s Size) String() string { return [...]string{"tiny", "quick", "full"}[s] }
