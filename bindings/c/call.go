package main

// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/pleach-go/pleach/collective"
)

// do makes a call, and fills in what it returns.
func (c *comm) do(ctx context.Context, on collective.Comm, call *C.pleach_call) C.int {
	if call.timeout_ms > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(call.timeout_ms)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	call.present, call.result_count, call.result, call.result_parts, call.comm, call.memory = 0, 0, nil, 0, nil, 0
	number := c.begin(call.restore != nil || call.takeover != nil || call.op == C.PLEACH_USER || call.once != nil)
	err := c.dispatch(ctx, on, call)
	call.number, call.retired = C.uint64_t(number), C.uint64_t(c.returned(number, c.onAfter(on)))
	return setError(&call.error, err)
}

// onAfter is the communicator after a call on one: an Admit may have changed that of a world.
func (c *comm) onAfter(on collective.Comm) collective.Comm {
	if c.derived == nil {
		return c.world.Comm
	}
	return on
}

// dispatch makes a call that has no elements, or leaves it to the type of its elements.
func (c *comm) dispatch(ctx context.Context, on collective.Comm, call *C.pleach_call) error {
	switch call.kind {
	case C.PLEACH_BARRIER:
		return collective.Barrier(ctx, on, modeOf(call)...)
	case C.PLEACH_ONCE:
		return c.once(ctx, on, call)
	case C.PLEACH_AGREE:
		value, err := collective.Agree(ctx, on, uint64(call.value), modeOf(call)...)
		call.value = C.uint64_t(value)
		return err
	case C.PLEACH_SPLIT:
		return c.split(ctx, on, call)
	case C.PLEACH_SHRINK:
		sub, err := on.Shrink(ctx)
		return c.derive(call, sub, err)
	case C.PLEACH_ADMIT, C.PLEACH_EVICT, C.PLEACH_FINALIZE:
		if c.derived != nil {
			return invalid("kind %d is a call of a world, and this is a communicator derived from one", call.kind)
		}
		return c.ofWorld(ctx, call)
	}
	if call.kind < 0 || call.kind > C.PLEACH_FINALIZE {
		return invalid("kind %d: there is no such call", call.kind)
	}
	if call._type < 0 || int(call._type) >= len(types) {
		return invalid("type %d: there is no such type", call._type)
	}
	return types[call._type].do(ctx, on, call)
}

func (c *comm) once(ctx context.Context, on collective.Comm, call *C.pleach_call) error {
	if call.once == nil {
		return invalid("PLEACH_ONCE needs a function: pleach_call.once")
	}
	callbacks := callbacksOf(call)
	return collective.Once(ctx, on, func(context.Context) error {
		return callbackError("once", func(reason *C.char) C.int { return C.call_once(callbacks, reason) })
	}, modeOf(call)...)
}

func (c *comm) split(ctx context.Context, on collective.Comm, call *C.pleach_call) error {
	if int(call.count) != on.Size() || call.in == nil {
		return invalid("%d colors for %d tasks", call.count, on.Size())
	}
	colors := slice[int32](call.in, call.count)
	sub, err := on.Split(ctx, func(task int) int { return int(colors[task]) })
	return c.derive(call, sub, err)
}

// derive hands out a communicator.
func (c *comm) derive(call *C.pleach_call, sub collective.Comm, err error) error {
	if err == nil {
		call.comm = (&comm{world: c.world, derived: &sub}).export()
	}
	return err
}

func (c *comm) ofWorld(ctx context.Context, call *C.pleach_call) error {
	switch call.kind {
	case C.PLEACH_EVICT:
		return c.world.Evict(ctx, int(call.root))
	case C.PLEACH_FINALIZE:
		return c.world.finalize(ctx)
	}
	a, err := c.world.Admit(ctx)
	if err != nil {
		return err
	}
	joined := make([]int32, len(a.Joined))
	for i, rank := range a.Joined {
		joined[i] = int32(rank)
	}
	call.value = C.uint64_t(a.Root)
	return result[int32]{call}.elements(joined, nil)
}

// callbacksOf are those of a call. The memory of the call is the program's when it has returned, and
// they may be called later.
func callbacksOf(call *C.pleach_call) *C.callbacks {
	return &C.callbacks{
		restore: call.restore, takeover: call.takeover, once: call.once, combine: call.combine,
		user: call.user,
	}
}

// modeOf returns the option that a call's mode is.
func modeOf(call *C.pleach_call) []collective.Option {
	switch call.mode {
	case C.PLEACH_REPORT:
		return []collective.Option{collective.Report()}
	case C.PLEACH_CORRECTED:
		return []collective.Option{collective.Corrected(int(call.dead))}
	}
	return nil
}

// slice is memory of C as a slice.
func slice[T any](data unsafe.Pointer, count C.size_t) []T {
	if data == nil {
		return nil
	}
	return unsafe.Slice((*T)(data), int(count))
}
