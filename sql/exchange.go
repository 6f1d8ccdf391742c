package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/partition"
)

// An exchange is a collective call. Its input follows from the task and the stage, so what
// makes the input of this process's own task also restores that of a dead one.

// produce runs a query for a stage of a task and makes the input of a call of it. If the query has an
// error, that is the input.
func produce(ctx context.Context, r *runner, task, stage int, query string,
	encode func(array.RecordReader) ([]byte, error),
) ([]byte, error) {
	parts, err := produceParts(ctx, r, task, stage, query, 1, func(rows array.RecordReader) ([][]byte, error) {
		part, err := encode(rows)
		return [][]byte{part}, err
	})
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// produceParts is produce for a call whose input is a part for each of several tasks.
func produceParts(ctx context.Context, r *runner, task, stage int, query string, to int,
	encode func(array.RecordReader) ([][]byte, error),
) (in [][]byte, err error) {
	err = r.do(ctx, task, stage, func(c *duck.Conn) error {
		rows, err := c.Query(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Release()
		in, err = encode(rows)
		return err
	})
	if text, ok := r.failure(stage, task, err); ok {
		return slices.Repeat([][]byte{text}, to), nil
	}
	return in, err
}

// ahead begins to make the inputs of tasks that this process has taken over in an earlier
// stage. They are made at the same time as that of its own task, so that the other processes do not wait
// for one after the other. It returns the function that makes inputs, which knows of them.
func ahead[In any](ctx context.Context, r *runner, input func(context.Context, int) (In, error)) func(context.Context,
	int) (In, error) {
	type begun struct {
		ready chan struct{}
		in    In
		err   error
	}
	others := make(map[int]*begun)
	for _, task := range r.Tasks() {
		if task != r.Rank() {
			b := &begun{ready: make(chan struct{})}
			others[task] = b
			go func() {
				defer close(b.ready)
				b.in, b.err = input(ctx, task)
			}()
		}
	}
	return func(ctx context.Context, task int) (none In, err error) {
		b, ok := others[task]
		if !ok {
			return input(ctx, task)
		}
		select {
		case <-b.ready:
			return b.in, b.err
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// toAll gathers all rows in one table of this process, which all of its tasks read.
func (r *runner) toAll(ctx context.Context, i int, s Stage, sent func()) error {
	all, err := r.gather(ctx, i, s.Query, sent)
	if err != nil {
		return err
	}
	return load(ctx, r.shared, s.To.Table, all)
}

// gather returns the rows of a query of all tasks.
func (r *runner) gather(ctx context.Context, i int, query string, sent func()) ([][]byte, error) {
	input := ahead(ctx, r, func(ctx context.Context, task int) ([]byte, error) {
		return produce(ctx, r, task, i, query, partition.Encode)
	})
	own, err := input(ctx, r.Rank())
	if err != nil {
		return nil, err
	}
	sent()
	all, err := collective.Allgather(ctx, r, own, r.options(collective.Restore(input))...)
	if err != nil {
		return nil, err
	}
	return all, failureOf(all)
}

// byHash sends each row to the task of its key.
func (r *runner) byHash(ctx context.Context, i int, s Stage, sent func()) error {
	return r.repartition(ctx, i, s, sent, func(rows array.RecordReader) ([][]byte, error) {
		route, err := partition.ByHash(rows.Schema(), s.To.Column, r.Size())
		if err != nil {
			return nil, err
		}
		return partition.Scatter(rows, r.Size(), route)
	})
}

// byRange does so, too, by limits that it chooses from samples of all tasks (sample sort,
// Frazer & McKellar 1970). The query is run twice, because its result may be large.
func (r *runner) byRange(ctx context.Context, i int, s Stage, sent func()) error {
	sample := ahead(ctx, r, func(ctx context.Context, task int) ([]byte, error) {
		return produce(ctx, r, task, i, s.Query, func(rows array.RecordReader) ([]byte, error) {
			return partition.Sample(rows, s.To.Column)
		})
	})
	own, err := sample(ctx, r.Rank())
	if err != nil {
		return err
	}
	samples, err := collective.Allgather(ctx, r, own, r.options(collective.Restore(sample))...)
	if err != nil {
		return err
	}
	if err := failureOf(samples); err != nil {
		return err
	}
	limits, err := partition.Limits(samples, r.Size())
	if err != nil {
		return err
	}
	return r.repartition(ctx, i, s, sent, func(rows array.RecordReader) ([][]byte, error) {
		route, err := partition.ByRange(rows.Schema(), s.To.Column, limits)
		if err != nil {
			return nil, err
		}
		return partition.Scatter(rows, r.Size(), route)
	})
}

// repartition sends the parts of each task's rows to their tasks.
func (r *runner) repartition(ctx context.Context, i int, s Stage, sent func(),
	scatter func(array.RecordReader) ([][]byte, error),
) error {
	input := ahead(ctx, r, func(ctx context.Context, task int) ([][]byte, error) {
		return produceParts(ctx, r, task, i, s.Query, r.Size(), scatter)
	})
	own, err := input(ctx, r.Rank())
	if err != nil {
		return err
	}
	sent()
	received, err := collective.Alltoall(ctx, r, own, r.options(
		collective.Restore(input),
		collective.Takeover(func(task int, parts [][]byte) { r.tasks[task].deliver(i, parts) }))...)
	if err != nil {
		return err
	}
	if err := failureOf(received); err != nil {
		return err
	}
	r.tasks[r.Rank()].deliver(i, received)
	return nil
}

// toResult runs the query over the tables that this process shares with all others. So they
// all have the same result.
func (r *runner) toResult(ctx context.Context, s Stage) (err error) {
	r.result = &Result{}
	if r.job.Out != "" {
		return r.writeResult(ctx, s)
	}
	r.result.Columns, r.result.Rows, err = r.shared.Text(ctx, s.Query)
	where := "phase " + s.Name
	if e, ok := r.queryError(where, err); ok {
		return e
	}
	if err != nil {
		return fmt.Errorf("sql: %s: %w", where, err)
	}
	return nil
}
