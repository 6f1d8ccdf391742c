package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Exchange sends parts to some tasks and returns those that others have sent here, by task:
// the exchange of halos on a grid, or of rows between the owners of a sparse matrix. Lengths
// may differ, and no task needs to know which others send to it:
//
//	halo, err := collective.Exchange(ctx, world, map[int][]float64{left: first, right: last},
//		collective.Restore(func(ctx context.Context, task int) (map[int][]float64, error) { … }))
//
// It is MPI_Neighbor_alltoallv without a topology. The tasks tell each other where they send,
// in log2 N steps while the parts are under way. With [Mutual] they need not.
func Exchange[T any](ctx context.Context, c Communicator, parts map[int][]T, options ...Option) (map[int][]T, error) {
	s := engine.Signature{
		Kind: engine.Exchange, Root: engine.NoRoot, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T]()),
	}
	var v invocation[T, map[int][]T, map[int][]T]
	o := optionsOf(options)
	v.in = parts
	if o.mutual {
		s.Detail++
	}
	if err := v.init(&s, o); err != nil {
		return nil, err
	}
	err := c.comm().do(ctx, s, func(t *engine.Task) error {
		in, err := v.input(t)
		if err != nil {
			return err
		}
		got, err := v.swapSome(t, in, o.mutual)
		if err == nil {
			v.deliver(t, got)
		}
		return err
	})
	return result(v.out, err)
}

// Mutual says of an [Exchange] that each task is sent something, which may be empty, by exactly
// those tasks that it sends something. That is so on grids, and saves messages. A task that
// breaks it waits for ever.
func Mutual() Option {
	return func(o *options) { o.mutual = true }
}

// swapSome sends a task's parts, and receives those of the tasks that send to it.
func (v *invocation[T, In, Out]) swapSome(t *engine.Task, parts map[int][]T, mutual bool) (map[int][]T, error) {
	receivers := slices.Sorted(maps.Keys(parts))
	for _, to := range receivers {
		if to < 0 || to >= t.N {
			return nil, fmt.Errorf("collective: Exchange with task %d: choose 0 to %d", to, t.N-1)
		}
	}
	got := make(map[int][]T, len(parts))
	for _, to := range receivers {
		if to == t.ID {
			got[to] = slices.Clone(parts[to])
		} else if err := v.sendElements(t, to, direct, parts[to]); err != nil {
			return nil, err
		}
	}
	senders, err := receivers, error(nil)
	if !mutual {
		senders, err = sendersTo(t, receivers)
		if err != nil {
			return nil, err
		}
	}
	for _, from := range senders {
		if from != t.ID {
			got[from], err = v.receivePart(t, from)
			if err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}

// sendersTo returns the tasks that send to a task, after all have told to which they send.
func sendersTo(t *engine.Task, receivers []int) (senders []int, err error) {
	var list []byte
	for _, to := range receivers {
		list = binary.BigEndian.AppendUint32(list, uint32(to))
	}
	b, err := exchange(t, appendBlock(nil, t.ID, list))
	if err != nil {
		return nil, err
	}
	lists, err := cutBlocks(b, t.N)
	for from, list := range lists {
		for ; len(list) >= 4; list = list[4:] {
			if binary.BigEndian.Uint32(list) == uint32(t.ID) {
				senders = append(senders, from)
			}
		}
	}
	return senders, err
}
