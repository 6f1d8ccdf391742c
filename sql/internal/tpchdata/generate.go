// Package tpchdata generates TPC-H data as Parquet files: the tables of package tpch. What is
// measured with them is no TPC-H result.
package tpchdata

import (
	"context"
	"errors"
	"sync"

	"github.com/pleach-go/pleach/lab/tpch"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/tables"
)

// Config says what to generate.
type Config struct {
	Scale    float64
	Parts    int
	Replicas int
	Dir      string // new or empty
	// Progress, if not nil, is called with the number of parts that are done.
	Progress func(parts int)
}

// Generate writes a dataset, with the answers that one DuckDB gives to the known queries.
func Generate(ctx context.Context, c Config) (d *dataset.Dataset, err error) {
	g, err := tpch.New(c.Scale)
	if err != nil {
		return nil, err
	}
	set, err := tables.New(c.Dir, c.Parts, c.Replicas, tableNames)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, set.Discard())
		}
	}()
	set.Scale = c.Scale
	w := &writer{Config: c, generator: g, set: set}
	if w.Progress == nil {
		w.Progress = func(int) {}
	}
	if err := w.parts(ctx); err != nil {
		return nil, err
	}
	if err := set.Save(); err != nil {
		return nil, err
	}
	set.Answers, err = answers(ctx, &set.Dataset)
	if err != nil {
		return nil, err
	}
	return &set.Dataset, set.Publish()
}

// workers is how many parts are generated at the same time.
const workers = 2

type writer struct {
	Config
	generator tpch.Generator
	set       *tables.Set

	mu   sync.Mutex
	done int
}

// parts writes all parts.
func (w *writer) parts(ctx context.Context) error {
	next := make(chan int)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for part := range next {
				if errs[i] == nil {
					errs[i] = w.part(ctx, part)
				}
			}
		})
	}
	for part := range w.Parts {
		next <- part
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}

// part writes the files of a part.
func (w *writer) part(ctx context.Context, number int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := share{w.generator, number, w.Parts}
	if err := p.write(ctx, func(table string) string { return w.set.File(table, number) }); err != nil {
		return err
	}
	for _, table := range tableNames {
		if err := w.set.Written(table, number); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	w.Progress(w.done)
	return nil
}
