package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Source has the tables of a job, as Parquet files that have the same columns in each task.
type Source interface {
	// Tables returns the files that have a task's rows, by the name of the table. The
	// rows are the same each time, on every process: the new owner of a task reads them
	// again.
	Tables(ctx context.Context, task, tasks int) (map[string][]string, error)
}

// Job is a query and its data. All processes pass the same.
type Job struct {
	// Query is a SELECT over the tables of the source. One process makes a plan of it, and
	// all run that.
	Query string
	// Plan is a plan, instead of a query.
	Plan   *Plan
	Source Source
	// Out, if not empty, is where the result is written, instead of to [Result.Rows]: a file
	// whose name ends with .parquet, .csv or .json, or with a query a directory for files of
	// each task, whose name ends with a slash. It must be new.
	Out string
	// Unprotected makes the job end with a [*collective.FailedError] when a process dies.
	// Nothing is logged then.
	Unprotected bool
	// Phase, if not nil, is called when this process begins a phase: a stage, by its name,
	// or its exchange, by the name and ".exchange".
	Phase func(name string)
	// Planned, if not nil, is called with the plan, before its first stage.
	Planned func(*Plan)
	// Done, if not nil, is called when the result is there, by the owner of task 0. If
	// that process dies before the others know, the next owner calls it again.
	Done func(*Result)
}

// Result is the result of a job.
type Result struct {
	// Columns and Rows are the names of columns, and values as text, if the plan ends with
	// [ToResult] and there is no Job.Out.
	Columns []string
	Rows    [][]string
	// Files and Written are the number of files that were written, and of rows in them.
	Files   int
	Written int64
}

// World is the processes of a job: a [*github.com/pleach-go/pleach.World] or a
// [collective.Comm].
type World interface {
	collective.Communicator
	Rank() int
	Size() int
	Tasks() []int
	Hold() (release func())
}

// DB is this process's DuckDB.
type DB struct {
	db *duck.DB

	inUse  sync.RWMutex // A query holds it for reading, and Close for writing.
	closed bool

	mu    sync.Mutex
	conns []*duck.Conn
}

// ErrClosed is returned by what is asked of a DB that is closed.
var ErrClosed = errors.New("sql: the database is closed")

// Open opens a DuckDB in memory. It computes with one thread, so that rows come in the same
// order each time. A job uses more processors by more processes.
func Open() (*DB, error) {
	db, err := duck.Open(1)
	if err != nil {
		return nil, err
	}
	return &DB{db: db}, nil
}

// Close closes the DuckDB, once no query runs in it. It is to be called when the job's world
// is finalized or aborted: until then another process may need the tasks that this one has
// taken over.
func (db *DB) Close() error {
	db.inUse.Lock()
	defer db.inUse.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.closed = true
	var err error
	for _, c := range db.conns {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, db.db.Close())
}

// connect opens a connection that Close closes.
func (db *DB) connect(ctx context.Context) (*duck.Conn, error) {
	c, err := db.db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.conns = append(db.conns, c)
	return c, nil
}

// Run runs a job. All processes call it, once for a DB. It returns the result to all of
// them. An error of the query is a [*QueryError] that is the same in all processes, whichever of
// them has met it.
func (db *DB) Run(ctx context.Context, w World, j Job) (*Result, error) {
	if j.Phase == nil {
		j.Phase = func(string) {}
	}
	if err := j.prepareOut(); err != nil {
		return nil, err
	}
	// From here on all processes are connected, and a death is noticed at once. One
	// before its first message looks like a late start, for which the others wait long.
	if err := collective.Barrier(ctx, w); err != nil {
		return nil, err
	}
	asked := j.Plan == nil
	if asked {
		var err error
		j.Plan, err = j.plan(ctx, w)
		if err != nil {
			return nil, err
		}
	}
	if j.Planned != nil {
		j.Planned(j.Plan)
	}
	r, err := db.newRunner(ctx, w, j)
	if err != nil {
		return nil, err
	}
	r.planned = asked
	if j.Plan.holds() && !j.Unprotected {
		defer w.Hold()()
	}
	for i, s := range j.Plan.Stages {
		if err := r.run(ctx, i, s); err != nil {
			return nil, err
		}
	}
	return r.result, r.complete(ctx)
}

// runner is a process's part in a job.
type runner struct {
	World
	job     Job
	planned bool // the plan was made of a query
	db      *DB
	shared  *duck.Conn // to the tables that all tasks have
	tasks   []*task
	result  *Result
}

func (db *DB) newRunner(ctx context.Context, w World, j Job) (*runner, error) {
	shared, err := db.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := &runner{World: w, job: j, db: db, shared: shared}
	for number := range w.Size() {
		r.tasks = append(r.tasks, newTask(number, len(j.Plan.Stages)))
	}
	own := r.tasks[w.Rank()]
	own.mu.Lock()
	defer own.mu.Unlock()
	if err := refuseUnpartitioned(ctx, shared, j.Plan); err != nil {
		return nil, err
	}
	return r, r.open(ctx, own)
}

// open reads a task's partition of the source, if this process has not yet.
func (r *runner) open(ctx context.Context, t *task) error {
	if t.conn != nil {
		return nil
	}
	tables, err := r.job.Source.Tables(ctx, t.number, r.Size())
	if err != nil {
		return err
	}
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	return t.attach(ctx, conn, tables)
}

// do calls f with a connection that has all tables of a task before a stage.
func (r *runner) do(ctx context.Context, number, stage int, f func(*duck.Conn) error) error {
	t, plan := r.tasks[number], r.job.Plan
	if err := t.await(ctx, plan, stage); err != nil {
		return err
	}
	r.db.inUse.RLock()
	defer r.db.inUse.RUnlock()
	if r.db.closed {
		return ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := r.open(ctx, t)
	if err == nil {
		err = t.load(ctx, plan, stage)
	}
	if err == nil {
		err = f(t.conn)
	}
	if err != nil {
		return fmt.Errorf("sql: phase %s of task %d: %w", plan.Stages[stage].Name, number, err)
	}
	return nil
}

// run runs a stage.
func (r *runner) run(ctx context.Context, i int, s Stage) error {
	r.job.Phase(s.Name)
	sent := func() { r.job.Phase(s.Name + ".exchange") }
	switch s.To.Kind {
	case ToAll:
		return r.toAll(ctx, i, s, sent)
	case ByHash:
		return r.byHash(ctx, i, s, sent)
	case ByRange:
		return r.byRange(ctx, i, s, sent)
	case ToResult:
		return r.toResult(ctx, s)
	case Write:
		return r.write(ctx, i, s, sent)
	}
	return fmt.Errorf("sql: stage %s has an unknown exchange, %d", s.Name, s.To.Kind)
}

// complete marks the output as complete, and reports the result.
func (r *runner) complete(ctx context.Context) error {
	return collective.Once(ctx, r, func(context.Context) error {
		err := r.completeOutput()
		if err == nil && r.job.Done != nil {
			r.job.Done(r.result)
		}
		return err
	}, r.options()...)
}

// options returns the options of a call: those that protect it, unless the job is not
// protected.
func (r *runner) options(protection ...collective.Option) []collective.Option {
	if r.job.Unprotected {
		return []collective.Option{collective.Report()}
	}
	return protection
}
