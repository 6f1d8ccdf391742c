// Package tpchdata generates TPC-H data as Parquet files: the tables customer, orders and
// lineitem of package tpch. What is measured with them is no TPC-H result.
package tpchdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/pleach-go/pleach/internal/tpch"
	"github.com/pleach-go/pleach/sql/dataset"
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

// Generate writes a dataset. It computes the answers of queries on the way, with the
// reference implementation of package tpch.
func Generate(ctx context.Context, c Config) (*dataset.Dataset, error) {
	g, err := tpch.New(c.Scale)
	if err != nil {
		return nil, err
	}
	w := &writer{Config: c, generator: g, customers: g.Customers(0, g.NumCustomers()), data: dataset.Dataset{
		Scale: c.Scale, Parts: c.Parts, Files: make(map[string][]int64), Answers: make(map[string][][]string),
	}}
	if w.Progress == nil {
		w.Progress = func(int) {}
	}
	for i := range c.Replicas {
		w.data.Places = append(w.data.Places, fmt.Sprintf("replica-%d", i))
	}
	if err := w.directories(); err != nil {
		return nil, err
	}
	if err := w.parts(ctx); err != nil {
		return nil, err
	}
	w.data.Answers["q3"] = rowsOfQ3(tpch.TopQ3(w.q3))
	return &w.data, w.data.Save(c.Dir)
}

// workers is how many parts are generated at the same time.
const workers = 2

type writer struct {
	Config
	generator tpch.Generator
	customers tpch.Customers

	mu   sync.Mutex
	data dataset.Dataset
	q3   []tpch.Q3Row // of each part
	done int
}

func (w *writer) directories() error {
	if entries, err := os.ReadDir(w.Dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has files already, such as %s: choose a new or empty directory", w.Dir, entries[0].Name())
	}
	for _, table := range tableNames {
		w.data.Files[table] = make([]int64, w.Parts)
		for _, place := range w.data.Places {
			if err := os.MkdirAll(filepath.Join(w.Dir, place, table), 0o777); err != nil {
				return err
			}
		}
	}
	return nil
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
	p := newPart(w.generator, number, w.Parts)
	file := func(place, table string) string { return dataset.File(filepath.Join(w.Dir, place), table, number) }
	if err := p.write(ctx, func(table string) string { return file(w.data.Places[0], table) }); err != nil {
		return err
	}
	for _, table := range tableNames {
		first := file(w.data.Places[0], table)
		for _, place := range w.data.Places[1:] {
			if err := copyFile(file(place, table), first); err != nil {
				return err
			}
		}
		info, err := os.Stat(first)
		if err != nil {
			return err
		}
		w.data.Files[table][number] = info.Size()
	}
	q3 := tpch.NewQ3(&w.customers)
	q3.Add(&p.orders, &p.lines)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.q3 = append(w.q3, q3.Rows()...)
	w.done++
	w.Progress(w.done)
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
