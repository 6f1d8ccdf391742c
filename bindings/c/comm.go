package main

// #include "library.h"
import "C"

import (
	"context"
	"slices"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// world is a job's world, and what ends its calls.
type world struct {
	*pleach.World
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	ended  bool
}

func newWorld(w *pleach.World) *world {
	r := &world{World: w}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// context is that of calls that begin now.
func (w *world) context() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctx
}

// interrupt ends the calls in progress. Later ones have another context.
func (w *world) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	w.ctx, w.cancel = context.WithCancel(context.Background())
}

// end closes or aborts the world, once.
func (w *world) end(abort bool) error {
	w.mu.Lock()
	ended := w.ended
	w.ended = true
	w.mu.Unlock()
	switch {
	case ended:
		return nil
	case abort:
		return w.Abort()
	}
	return w.Close()
}

// finalize ends the job.
func (w *world) finalize(ctx context.Context) error {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	return w.Finalize(ctx)
}

func (w *world) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// comm is a communicator of a program.
type comm struct {
	world   *world
	derived *collective.Comm // nil: the world, whose communicator changes with admissions

	mu              sync.Mutex
	number          uint64 // of the last call
	live            []liveCall
	current, former *engine.Engine // of this generation and the one before; former may be nil
	holds           []func()       // that release them, in order
}

// on is the communicator that calls are made on.
func (c *comm) on() collective.Comm {
	if c.derived != nil {
		return *c.derived
	}
	return c.world.Comm
}

// liveCall is a call whose callbacks may still be called.
type liveCall struct {
	number uint64
	engine *engine.Engine // nil: it has not returned
	next   uint64         // call number after it
}

// begin numbers a call.
func (c *comm) begin(callbacks bool) (number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	if callbacks {
		c.live = append(c.live, liveCall{number: c.number})
	}
	return c.number
}

// returned notes that a call has returned, and reports up to which number the callbacks of calls are not
// called any more: all processes have completed those calls, also for tasks that were taken over, or the
// calls are of a generation before the last one.
func (c *comm) returned(number uint64, on collective.Comm) (retired uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.live) == 0 || c.world.hasEnded() {
		return c.number
	}
	if e := engine.Comm(on).Engine(); e != c.current {
		c.current, c.former = e, c.current
	}
	next, low := engine.Comm(on).CallNumbers()
	if i := slices.IndexFunc(c.live, func(l liveCall) bool { return l.number == number }); i >= 0 {
		c.live[i].engine, c.live[i].next = c.current, next
	}
	for len(c.live) > 0 && c.live[0].isOver(c.current, c.former, low) {
		c.live = c.live[1:]
	}
	if len(c.live) == 0 {
		return c.number
	}
	return c.live[0].number - 1
}

func (l *liveCall) isOver(current, former *engine.Engine, low uint64) bool {
	switch l.engine {
	case nil, former:
		return false // it has not returned, or others may need it
	case current:
		return l.next <= low
	}
	return true
}
