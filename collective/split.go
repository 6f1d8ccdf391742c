package collective

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Split derives communicators of tasks that have the same color, and returns that of this
// process: rows and columns of a grid, groups of a model, the processes of a host. It is
// MPI_Comm_split with a color that all processes can compute for each task:
//
//	row, err := world.Split(ctx, func(task int) int { return task / columns })
//
// color is called for all tasks, and must return the same on all processes, or all return a
// [*MismatchError]. A color that only its task knows is gathered before:
//
//	colors, err := collective.Allgather(ctx, world, []int{mine})
//	part, err := world.Split(ctx, func(task int) int { return colors[task][0] })
//
// Tasks and ranks of the new communicator count from 0, in the order of the old one
// ([Comm.WorldRank] returns those of the world). When a process dies, survivors of its own
// color take over its task in the new communicator, and [Restore] is asked for inputs by the
// new communicator's tasks. They differ from the task's owner in the old one. A color of which
// all processes have died makes no calls any more.
//
// Calls in several communicators are independent of each other: each has its own order. The
// new communicator ends with the one it was derived from; after [*github.com/pleach-go/pleach.World.Admit]
// has taken in a process, a program splits again.
func (c Comm) Split(ctx context.Context, color func(task int) int) (Comm, error) {
	own := color(c.Rank())
	var tasks []int // of the own color
	colors := make([]int, c.Size())
	for task := range colors {
		colors[task] = color(task)
		if colors[task] == own {
			tasks = append(tasks, task)
		}
	}
	s := engine.Signature{
		Kind: engine.Split, Root: engine.NoRoot, Length: engine.NoLength,
		Detail: engine.DetailOf(fmt.Sprint(colors)),
	}
	var sub core
	err := c.do(ctx, s, func(t *engine.Task) (err error) {
		if t.Own() {
			sub, err = t.Split(tasks, own)
			if err != nil {
				return err
			}
		}
		return meet(t)
	})
	return result(Comm(sub), err)
}
