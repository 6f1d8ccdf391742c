package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/lab/tpch"
)

// Query 3 of TPC-H with the calls of the thesis on fault-tolerant collectives (Stengler
// 2017, §5.3.1, Figure 5.16): filter, gather the sizes, broadcast the sizes, exchange the
// customer keys by an Alltoallv, join, and gather or reduce. Each call ends a phase.
//
// The last call of the thesis leaves the result at the root. If that dies, no process
// waits for the new owner of its task, and the job may end before it has the result. So
// the last call is an Allreduce here.

// Phases of the query. A process that dies in one has done its work in it, and does not
// make its call.
const (
	noPhase       = iota
	phaseGather   // generate and filter
	phaseSizes    // nothing to do
	phaseExchange // nothing to do
	phaseJoin     // join and sort
	afterQuery    // a process that dies has completed the last call
)

// query is the program of a process.
type query struct {
	Data     dataset
	Approach string
	Victim   int
	Phase    int // in which the victim dies
	// ToRoot makes the last call the thesis's Reduce instead of an Allreduce.
	ToRoot bool
}

// queryReport is what a process has to say.
type queryReport struct {
	// Rows are the result as the last call has returned it, if it has.
	Rows []tpch.Q3Row
	// TakenOver are the result as the new owner of the root's task gets it.
	TakenOver []tpch.Q3Row
	// Restored is the number of partitions that the process has loaded for others.
	Restored int
}

// queryProcess is the part of one process.
type queryProcess struct {
	*query
	*pleach.World
	die    func()
	failed bool // with optimized: a failure is agreed on
	sizes  chan []int32

	mu     sync.Mutex
	loaded map[int]*partition
	report queryReport
}

func (q *query) run(ctx context.Context, w *pleach.World, die func()) (any, error) {
	p := &queryProcess{query: q, World: w, die: die, loaded: make(map[int]*partition), sizes: make(chan []int32, 1)}
	// From here on all processes are connected, and a death is noticed at once.
	if err := collective.Barrier(ctx, w); err != nil {
		return nil, err
	}
	own, err := p.partition(w.Rank())
	if err != nil {
		return nil, err
	}
	mine := own.filter()
	p.reach(phaseGather)
	sizes, err := p.shareSizes(ctx, mine)
	if err != nil {
		return nil, err
	}
	p.reach(phaseExchange)
	keys, err := p.exchange(ctx, mine, sizes)
	if err != nil {
		return nil, err
	}
	top := own.join(keys)
	p.reach(phaseJoin)
	if err := p.reduce(ctx, keys, top); err != nil {
		return nil, err
	}
	p.reach(afterQuery)
	if err := w.Finalize(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &p.report, nil
}

// reach is where the victim dies.
func (p *queryProcess) reach(phase int) {
	if p.Phase == phase && p.Rank() == p.Victim {
		p.die()
	}
}

// partition returns a task's partition. Those of others are restored once, although
// several calls need them.
func (p *queryProcess) partition(task int) (*partition, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had, ok := p.loaded[task]; ok {
		return had, nil
	}
	one, err := p.Data.load(task)
	if err != nil {
		return nil, err
	}
	p.loaded[task] = one
	if task != p.Rank() {
		p.report.Restored++
	}
	return one, nil
}

// restored is the option that makes the input of a task from its partition.
func restored[In any](p *queryProcess, input func(*partition) In) collective.Option {
	return collective.Restore(func(_ context.Context, task int) (none In, err error) {
		one, err := p.partition(task)
		if err != nil {
			return none, err
		}
		return input(one), nil
	})
}

// try makes a call that does not run through failures. Done is false if a call that
// does has to be made instead.
func try[Out any](ctx context.Context, p *queryProcess, call func(collective.Option) (Out, error)) (out Out, done bool,
	err error,
) {
	if p.Approach == RunThrough || p.failed {
		return out, false, nil
	}
	out, err = call(collective.Report())
	if p.Approach == Plain {
		return out, true, err
	}
	success := uint64(1)
	if isFailed(err) {
		success = 0
	} else if err != nil {
		return out, false, err
	}
	// A process whose part was done before another one died does not notice: only that
	// the agreement reports the dead lets all come to the same end.
	success, err = collective.Agree(ctx, p, success, collective.Report())
	if err != nil && !isFailed(err) {
		return out, false, err
	}
	p.failed = success == 0 || err != nil
	return out, !p.failed, nil
}

// isFailed reports whether a call has ended because processes have died.
func isFailed(err error) bool {
	var failed *collective.FailedError
	return errors.As(err, &failed)
}

// shareSizes tells all processes how many keys each task has: a Gather, then a
// Broadcast.
func (p *queryProcess) shareSizes(ctx context.Context, mine []int32) ([]int32, error) {
	gathered, done, err := try(ctx, p, func(o collective.Option) ([][]int32, error) {
		return collective.Gather(ctx, p, 0, size(mine), o)
	})
	if err != nil {
		return nil, err
	}
	if done {
		p.reach(phaseSizes)
		sizes, done, err := try(ctx, p, func(o collective.Option) ([]int32, error) {
			return collective.Broadcast(ctx, p, 0, slices.Concat(gathered...), o)
		})
		if done || err != nil {
			return sizes, err
		}
	}
	return p.shareSizesThrough(ctx, mine)
}

// shareSizesThrough is shareSizes with calls that run through failures. A root that dies
// takes the sizes along that it has gathered: "all the sizes of the customer tables have to
// be gathered at the new process" (§5.3.1). The hold does that.
func (p *queryProcess) shareSizesThrough(ctx context.Context, mine []int32) ([]int32, error) {
	defer p.Hold()()
	gathered, err := collective.Gather(ctx, p, 0, size(mine),
		restored(p, func(one *partition) []int32 { return size(one.filter()) }),
		collective.Takeover(func(task int, all [][]int32) {
			if task == 0 {
				p.sizes <- slices.Concat(all...)
			}
		}))
	if err != nil {
		return nil, err
	}
	p.reach(phaseSizes)
	return collective.Broadcast(ctx, p, 0, slices.Concat(gathered...),
		collective.Restore(func(ctx context.Context, task int) ([]int32, error) {
			if task != 0 {
				return nil, nil
			}
			select {
			case sizes := <-p.sizes:
				return sizes, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))
}

func size(keys []int32) []int32 { return []int32{int32(len(keys))} }

// exchange returns the keys of all tasks. Every process needs all of them, so what the
// thesis calls an Alltoallv sends the same to each.
func (p *queryProcess) exchange(ctx context.Context, mine, sizes []int32) ([]int32, error) {
	toAll := func(keys []int32) [][]int32 { return slices.Repeat([][]int32{keys}, p.Size()) }
	call := func(o collective.Option) ([][]int32, error) { return collective.Alltoall(ctx, p, toAll(mine), o) }
	all, done, err := try(ctx, p, call)
	if err == nil && !done {
		all, err = call(restored(p, func(one *partition) [][]int32 { return toAll(one.filter()) }))
	}
	if err != nil {
		return nil, err
	}
	for task, keys := range all {
		if len(keys) != int(sizes[task]) {
			return nil, fmt.Errorf("experiments: task %d has sent %d keys, and said %d", task, len(keys), sizes[task])
		}
	}
	return slices.Concat(all...), nil
}

// reduce makes the last call.
func (p *queryProcess) reduce(ctx context.Context, keys []int32, top topTen) error {
	operator := collective.NewOperator("top ten", mergeTopTen)
	call := func(options ...collective.Option) ([]topTen, error) {
		if p.ToRoot {
			return collective.Reduce(ctx, p, 0, []topTen{top}, operator, options...)
		}
		return collective.Allreduce(ctx, p, []topTen{top}, operator, options...)
	}
	result, done, err := try(ctx, p, func(o collective.Option) ([]topTen, error) { return call(o) })
	if err == nil && !done {
		result, err = call(restored(p, func(one *partition) []topTen { return []topTen{one.join(keys)} }),
			collective.Takeover(func(task int, result []topTen) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if task == 0 {
					p.report.TakenOver = result[0].rows()
				}
			}))
	}
	if err == nil && len(result) > 0 {
		p.report.Rows = result[0].rows()
	}
	return err
}
