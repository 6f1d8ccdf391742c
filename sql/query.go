package sql

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/planner"
)

// QueryError is an error of a query: there is no plan for it, and the text says what to write
// instead, or a value is wrong, such as a text that is not the number it is cast to. All processes of
// a job return the same one.
type QueryError struct{ Text string }

func (e *QueryError) Error() string { return "sql: " + e.Text }

// NewPlan makes a plan of a query for so many tasks. It looks at the first task's part of the
// source, for the columns of tables and an estimate of their sizes. If dir is not empty, each
// task writes its part of the result there. It returns a [*QueryError] for a query that it
// does not understand, or whose answer would not be sure, and an [*UnpartitionedError] for one
// that reads files.
func NewPlan(ctx context.Context, query string, source Source, tasks int, dir string) (*Plan, error) {
	tables, err := source.Tables(ctx, 0, tasks)
	if err != nil {
		return nil, err
	}
	db, err := duck.Open(1)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := refuseUnpartitioned(ctx, conn, &Plan{Stages: []Stage{{Query: query}}}); err != nil {
		return nil, err
	}
	q := planner.Question{Query: query, Tasks: tasks, Write: dir != ""}
	for name, files := range tables {
		q.Tables = append(q.Tables, name)
		if err := conn.Exec(ctx, duck.ParquetView(name, files)); err != nil {
			return nil, err
		}
	}
	stages, err := planner.Plan(ctx, conn, q)
	if refused, ok := errors.AsType[*planner.Error](err); ok {
		return nil, &QueryError{refused.Text}
	}
	return newPlan(stages, dir), err
}

// kinds are the exchanges of the planner.
var kinds = map[planner.To]Kind{
	planner.All: ToAll, planner.Hash: ByHash, planner.Result: ToResult,
	planner.Write: Write,
}

func newPlan(stages []planner.Stage, dir string) *Plan {
	p := &Plan{}
	for _, s := range stages {
		to := Exchange{Kind: kinds[s.To], Table: s.Table, Column: s.Column}
		if to.Kind == Write {
			to.Dir = dir
		}
		p.Stages = append(p.Stages, Stage{Name: s.Name, Query: s.Query, To: to})
	}
	return p
}

// planned is what the process that plans tells the others.
type planned struct {
	Plan    *Plan
	Refused string // the text of a QueryError
	Reads   string // the file of an UnpartitionedError
}

// plan returns the plan of the query, which the owner of task 0 makes. The result of planning
// follows from the source, so the next owner makes the same one.
func (j *Job) plan(ctx context.Context, w World) (*Plan, error) {
	j.Phase("plan")
	input := func(ctx context.Context, task int) ([]byte, error) {
		if task != 0 {
			return nil, nil
		}
		var p planned
		var err error
		p.Plan, err = NewPlan(ctx, j.Query, j.Source, w.Size(), j.dir())
		if refused, ok := errors.AsType[*QueryError](err); ok {
			p.Refused, err = refused.Text, nil
		}
		if reads, ok := errors.AsType[*UnpartitionedError](err); ok {
			p.Reads, err = reads.Reads, nil
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(p)
	}
	own, err := input(ctx, w.Rank())
	if err != nil {
		return nil, err
	}
	option := collective.Restore(input)
	if j.Unprotected {
		option = collective.Report()
	}
	told, err := collective.Broadcast(ctx, w, 0, own, option)
	if err != nil {
		return nil, err
	}
	var p planned
	switch err := json.Unmarshal(told, &p); {
	case err != nil:
		return nil, err
	case p.Refused != "":
		return nil, &QueryError{p.Refused}
	case p.Reads != "":
		return nil, &UnpartitionedError{"", p.Reads}
	}
	return p.Plan, nil
}
