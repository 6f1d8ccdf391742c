package reproduce

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/lab/experiments"
)

// job is one measurement under way.
type job struct {
	ctx context.Context
	Options
	seed uint64
}

// pick chooses a number by size.
func (j *job) pick(tiny, quick, full int) int { return [...]int{tiny, quick, full}[j.Size] }

// done tells which share of the work is done.
func (j *job) done(share float64) {
	if j.Progress != nil {
		j.Progress(share)
	}
}

// part is a job whose whole is from one share of this one's to another.
func (j *job) part(from, to float64) *job {
	p := *j
	p.Progress = func(share float64) { j.done(from + share*(to-from)) }
	return &p
}

// cell is one scenario of a measurement: what its rows begin with, and what is
// run for them.
type cell struct {
	labels   []any
	scenario experiments.Scenario
	// weight is how long it takes compared with others; 0 is 1.
	weight float64
}

// run runs the cells, one after the other and each on all cores, and gives each
// report away.
func (j *job) run(cells []cell, take func(cell, *experiments.Report)) error {
	return j.runFrom(0, cells, take)
}

// tabulate runs the cells and returns the tables that take fills. What is in them
// is kept now and then, and taken up again: an interrupted measurement goes on
// with the cell it was at.
func (j *job) tabulate(cells []cell, tables Data, take func(cell, *experiments.Report)) (Data, error) {
	done := 0
	if j.keep != nil {
		done = j.keep.load(tables)
	}
	err := j.runFrom(done, cells, func(c cell, r *experiments.Report) {
		take(c, r)
		done++
		if j.keep != nil {
			j.keep.save(done, tables)
		}
	})
	return tables, err
}

// keeper keeps what is done of a measurement. Nothing is lost but time if it
// cannot.
type keeper interface {
	// save keeps the tables that so many cells have filled.
	save(cells int, tables Data)
	// load puts into the tables what was kept, and returns of how many cells.
	load(tables Data) (cells int)
}

// runFrom runs the cells from a given one on.
func (j *job) runFrom(first int, cells []cell, take func(cell, *experiments.Report)) error {
	var all, before float64
	for i := range cells {
		if cells[i].weight == 0 {
			cells[i].weight = 1
		}
		all += cells[i].weight
		if i < first {
			before += cells[i].weight
		}
	}
	for _, c := range cells[min(first, len(cells)):] {
		s := c.scenario
		report, err := s.Run(j.ctx, func(done int) {
			j.done((before + c.weight*float64(done)/float64(s.Runs)) / all)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", c.labels, err)
		}
		before += c.weight
		take(c, report)
	}
	return nil
}
