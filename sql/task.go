package sql

import (
	"context"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/partition"
)

// task is a task's part of the tables, in this process's DuckDB: a schema of its own. The
// process uses the one of its own task, and those of the tasks that it takes over.
type task struct {
	number   int
	received []delivery // by stage

	mu   sync.Mutex // A connection runs one query at a time.
	conn *duck.Conn // nil: this process has had nothing to do for the task
}

// delivery is what a task has got by the exchange of a stage.
type delivery struct {
	once   sync.Once
	ready  chan struct{}
	parts  [][]byte
	loaded bool
}

func newTask(number, stages int) *task {
	t := &task{number: number, received: make([]delivery, stages)}
	for i := range t.received {
		t.received[i].ready = make(chan struct{})
	}
	return t
}

// deliver gives the task what the exchange of a stage has brought.
func (t *task) deliver(stage int, parts [][]byte) {
	d := &t.received[stage]
	d.once.Do(func() {
		d.parts = parts
		close(d.ready)
	})
}

// await returns when everything is there that the exchanges before a stage deliver. For a
// task that was taken over, other processes send it again.
func (t *task) await(ctx context.Context, plan *Plan, stage int) error {
	for i, s := range plan.Stages[:stage] {
		if !s.To.repartitions() {
			continue
		}
		select {
		case <-t.received[i].ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// load creates the tables that were delivered before a stage.
func (t *task) load(ctx context.Context, plan *Plan, stage int) error {
	for i, s := range plan.Stages[:stage] {
		if d := &t.received[i]; s.To.repartitions() && !d.loaded {
			if err := load(ctx, t.conn, s.To.Table, d.parts); err != nil {
				return fmt.Errorf("table %s: %w", s.To.Table, err)
			}
			d.parts, d.loaded = nil, true
		}
	}
	return nil
}

// load creates a table of encoded rows.
func load(ctx context.Context, conn *duck.Conn, table string, parts [][]byte) error {
	rows, err := partition.Decode(parts)
	if err != nil {
		return err
	}
	defer rows.Release()
	return conn.Load(ctx, table, rows)
}

// attach gives the task a connection to its tables: files that its share of the source is
// in. A name means a table of the task, then one that all tasks have. It may be done again
// if a call that needed the task was over before it was done.
func (t *task) attach(ctx context.Context, conn *duck.Conn, tables map[string][]string) error {
	schema := fmt.Sprintf("task_%d", t.number)
	statements := []string{"CREATE SCHEMA IF NOT EXISTS " + schema, fmt.Sprintf("SET search_path = '%s,main'", schema)}
	for name, files := range tables {
		statements = append(statements, duck.ParquetView(name, files))
	}
	for _, s := range statements {
		if err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	t.conn = conn
	return nil
}
