package difftest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/partition"
	"github.com/pleach-go/pleach/sql/internal/planner"
)

// Cluster has tables twice: in parts, each in a schema of a task, and whole.
type Cluster struct {
	tables   []Table
	dbs      []*duck.DB
	planning *duck.Conn   // has the tables of task 0
	tasks    []*duck.Conn // has those of a task, and what went to all
	shared   *duck.Conn   // has what went to all
	alone    *duck.Conn   // has whole tables
}

func (c *Cluster) parts() int { return len(c.tables[0].Parts) }

// NewCluster creates tables.
func NewCluster(ctx context.Context, tables []Table) (c *Cluster, err error) {
	c = &Cluster{tables: tables}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for range 3 {
		db, err := duck.Open(1)
		if err != nil {
			return c, err
		}
		c.dbs = append(c.dbs, db)
	}
	c.planning, err = c.connect(ctx, c.dbs[0], "main", 0, 1)
	if err != nil {
		return c, err
	}
	c.alone, err = c.connect(ctx, c.dbs[1], "main", 0, c.parts())
	if err != nil {
		return c, err
	}
	c.shared, err = c.dbs[2].Connect(ctx)
	if err != nil {
		return c, err
	}
	for task := range c.parts() {
		conn, err := c.connect(ctx, c.dbs[2], fmt.Sprintf("task_%d", task), task, task+1)
		if err != nil {
			return c, err
		}
		c.tasks = append(c.tasks, conn)
	}
	return c, nil
}

// connect returns a connection to a schema that has some parts of the tables.
func (c *Cluster) connect(ctx context.Context, db *duck.DB, schema string, from, to int) (*duck.Conn, error) {
	conn, err := db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	statements := []string{"CREATE SCHEMA IF NOT EXISTS " + schema, fmt.Sprintf("SET search_path = '%s,main'", schema)}
	for _, t := range c.tables {
		statements = append(statements, t.statement(schema, t.Parts[from:to]...))
	}
	for _, s := range statements {
		if err := conn.Exec(ctx, s); err != nil {
			return conn, fmt.Errorf("%s: %w", s, err)
		}
	}
	return conn, nil
}

// Close closes the databases.
func (c *Cluster) Close() (err error) {
	for _, conn := range append(c.tasks, c.planning, c.shared, c.alone) {
		if conn != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	for _, db := range c.dbs {
		err = errors.Join(err, db.Close())
	}
	return err
}

// Result is the rows of a query as text, or why there are none.
type Result struct {
	Columns []string
	Types   []string // in DuckDB
	Rows    [][]string
	Err     error
}

// Alone runs a query over whole tables.
func (c *Cluster) Alone(ctx context.Context, query string) (r Result) {
	r.read(ctx, c.alone, query)
	return r
}

// read runs a query.
func (r *Result) read(ctx context.Context, conn *duck.Conn, query string) {
	rows := r.Rows
	r.Columns, r.Rows, r.Err = conn.Text(ctx, query)
	if r.Err != nil {
		return
	}
	r.Rows = append(rows, r.Rows...)
	_, described, err := conn.Text(ctx, "DESCRIBE "+query)
	r.Types, r.Err = nil, err
	for _, row := range described {
		r.Types = append(r.Types, row[1])
	}
}

// Judge compares a query in parts with one DuckDB. It returns the stages, too.
func (c *Cluster) Judge(ctx context.Context, q Query, random *rand.Rand) (v Verdict, why, stages string) {
	want := c.Alone(ctx, q.SQL)
	got, planned := c.Planned(ctx, q.SQL, false, random)
	v, why = Compare(q, want, got)
	stages = Describe(planned)
	switch {
	case v != Equal:
	case q.Whole != "":
		if whole := c.Alone(ctx, q.Whole); !Contained(whole, got) {
			return Different, fmt.Sprintf("rows are %q, want some of %q", got.Rows, whole.Rows), stages
		}
	case len(q.Ordered) == 0 && random.IntN(8) == 0: // A result in files has no order.
		got, planned = c.Planned(ctx, q.SQL, true, random)
		if written, reason := Compare(q, want, got); written != Refused {
			return written, "in files: " + reason, Describe(planned)
		}
	}
	return v, why, stages
}

// Planned plans a query, by any right plan, and runs it in parts. With write, each task has a part of
// the result. It returns the stages, too.
func (c *Cluster) Planned(ctx context.Context, query string, write bool,
	random *rand.Rand,
) (r Result, stages []planner.Stage) {
	q := planner.Question{Query: query, Tasks: c.parts(), Write: write, Random: random}
	for _, t := range c.tables {
		q.Tables = append(q.Tables, t.Name)
	}
	r.Err = c.planning.Exec(ctx, "BEGIN")
	if r.Err != nil {
		return r, nil
	}
	stages, r.Err = planner.Plan(ctx, c.planning, q)
	r.Err = errors.Join(r.Err, c.planning.Exec(ctx, "ROLLBACK")) // The planner has created views.
	if r.Err != nil {
		return r, stages
	}
	for _, s := range stages {
		switch s.To {
		case planner.Result:
			r.read(ctx, c.shared, s.Query)
		case planner.Write:
			for _, conn := range c.tasks {
				if r.Err == nil {
					r.read(ctx, conn, s.Query)
				}
			}
		default:
			if err := c.stage(ctx, s); err != nil {
				r.Err = fmt.Errorf("%w (stage %s: %s)", err, s.Name, s.Query)
			}
		}
		if r.Err != nil {
			break
		}
	}
	for _, s := range stages {
		c.drop(ctx, s)
	}
	return r, stages
}

// drop removes the tables of a stage that the next query does not know.
func (c *Cluster) drop(ctx context.Context, s planner.Stage) {
	conns := []*duck.Conn{c.shared}
	switch s.To {
	case planner.Result, planner.Write:
		return
	case planner.Hash:
		conns = c.tasks
	}
	for _, conn := range conns {
		_ = conn.Exec(ctx, "DROP TABLE IF EXISTS "+duck.Identifier(s.Table)) // It may not be there.
	}
}

// stage runs a stage for all tasks, and exchanges its rows.
func (c *Cluster) stage(ctx context.Context, s planner.Stage) error {
	to := 1
	if s.To == planner.Hash {
		to = c.parts()
	}
	received := make([][][]byte, to)
	for _, conn := range c.tasks {
		parts, err := scatter(ctx, conn, s, to)
		if err != nil {
			return err
		}
		for i, part := range parts {
			received[i] = append(received[i], part)
		}
	}
	for i, parts := range received {
		conn := c.shared
		if s.To == planner.Hash {
			conn = c.tasks[i]
		}
		rows, err := partition.Decode(parts)
		if err != nil {
			return err
		}
		err = conn.Load(ctx, s.Table, rows)
		rows.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func scatter(ctx context.Context, conn *duck.Conn, s planner.Stage, to int) ([][]byte, error) {
	rows, err := conn.Query(ctx, s.Query)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	if s.To != planner.Hash {
		part, err := partition.Encode(rows)
		return [][]byte{part}, err
	}
	route, err := partition.ByHash(rows.Schema(), s.Column, to)
	if err != nil {
		return nil, err
	}
	return partition.Scatter(rows, to, route)
}

// Describe returns stages as text.
func Describe(stages []planner.Stage) string {
	var b strings.Builder
	for _, s := range stages {
		fmt.Fprintf(&b, "  phase %s: %s => %s %d(%s)\n", s.Name, s.Query, s.Table, s.To, s.Column)
	}
	return b.String()
}
