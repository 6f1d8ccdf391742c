// Package main is libpleach: package collective for programs in other languages. pleach.h is its
// interface, and library.c has its functions, which look for forks and then call those of this file.
//
// A call is made by the thread that calls: a goroutine that is locked to it polls and waits as that of a
// Go program does. Handing calls to another goroutine would cost two wake-ups of threads each. So would
// giving way to other goroutines where there is one processor (GOMAXPROCS=1): the library has two at least.
package main

/*
#include <stdlib.h>
#include "library.h"

pleach_comm *pleachgo_new_comm(uintptr_t handle, int rank, int size, int replacement);
*/
import "C"

import (
	"context"
	"runtime"
	"runtime/cgo"
	"strings"
	"time"
	"unsafe"

	"github.com/pleach-go/pleach"
)

func main() {} // a library has none, but -buildmode=c-shared wants it

func commOf(handle C.uintptr_t) *comm { return cgo.Handle(handle).Value().(*comm) }

// export returns a communicator's handle for C.
func (c *comm) export() *C.pleach_comm {
	replacement := C.int(0)
	if c.world.Respawned() {
		replacement = 1
	}
	on := c.on()
	return C.pleachgo_new_comm(C.uintptr_t(cgo.NewHandle(c)), C.int(on.Rank()), C.int(on.Size()), replacement)
}

//export pleachgo_world
func pleachgo_world(config *C.pleach_config, out **C.pleach_comm, failure *C.pleach_error) C.int {
	c := pleach.Config{
		Rank:      int(config.rank),
		Detection: pleach.Detection{StartTimeout: time.Duration(config.start_timeout_ms) * time.Millisecond},
		Job: pleach.Job{
			Respawned:       config.replacement != 0,
			ProgressTimeout: time.Duration(config.progress_timeout_ms) * time.Millisecond,
			PollTime:        time.Duration(config.poll_us) * time.Microsecond,
		},
	}
	if config.addresses != nil {
		c.Addresses = strings.Split(C.GoString(config.addresses), ",")
	}
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
	w, err := pleach.NewWorld(context.Background(), c)
	if err == nil {
		*out = (&comm{world: newWorld(w)}).export()
	}
	return setError(failure, err)
}

//export pleachgo_close
func pleachgo_close(handle C.uintptr_t) C.int { return setError(nil, commOf(handle).world.end(false)) }

//export pleachgo_abort
func pleachgo_abort(handle C.uintptr_t) C.int { return setError(nil, commOf(handle).world.end(true)) }

//export pleachgo_free
func pleachgo_free(handle C.uintptr_t) C.int {
	c := commOf(handle)
	cgo.Handle(handle).Delete()
	if c.derived == nil {
		_ = c.world.end(true) // unless it has ended
	}
	return C.PLEACH_OK
}

//export pleachgo_do
func pleachgo_do(handle C.uintptr_t, call *C.pleach_call) C.int {
	c := commOf(handle)
	return c.do(c.world.context(), c.on(), call)
}

// request is a call that is under way.
type request struct {
	cancel context.CancelFunc
	done   chan struct{}
	code   C.int
}

//export pleachgo_start
func pleachgo_start(handle C.uintptr_t, call *C.pleach_call, out *C.uintptr_t) C.int {
	c := commOf(handle)
	if call.kind < 0 || call.kind > C.PLEACH_EXCHANGE {
		return setError(&call.error, invalid("pleach_start of kind %d: only kinds up to PLEACH_EXCHANGE can be started",
			call.kind))
	}
	ctx, cancel := context.WithCancel(c.world.context())
	r := &request{cancel: cancel, done: make(chan struct{})}
	on := c.on().Reserve() // here, where the order of calls is known
	go func() {
		defer close(r.done)
		defer cancel()
		r.code = c.do(ctx, on, call)
	}()
	*out = C.uintptr_t(cgo.NewHandle(r))
	return C.PLEACH_OK
}

//export pleachgo_wait
func pleachgo_wait(handle C.uintptr_t, timeout C.int) C.int {
	r := cgo.Handle(handle).Value().(*request)
	var late <-chan time.Time // never, if nil
	if timeout >= 0 {
		timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-r.done:
	case <-late:
		return C.PLEACH_PENDING
	}
	cgo.Handle(handle).Delete()
	return r.code
}

//export pleachgo_cancel
func pleachgo_cancel(handle C.uintptr_t) C.int {
	cgo.Handle(handle).Value().(*request).cancel()
	return C.PLEACH_OK
}

//export pleachgo_interrupt
func pleachgo_interrupt(handle C.uintptr_t) C.int {
	commOf(handle).world.interrupt()
	return C.PLEACH_OK
}

//export pleachgo_owner
func pleachgo_owner(handle C.uintptr_t, task C.int) C.int {
	if c := commOf(handle).on(); task >= 0 && int(task) < c.Size() {
		return C.int(c.Owner(int(task)))
	}
	return -1
}

//export pleachgo_world_rank
func pleachgo_world_rank(handle C.uintptr_t, rank C.int) C.int {
	if c := commOf(handle).on(); rank >= 0 && int(rank) < c.Size() {
		return C.int(c.WorldRank(int(rank)))
	}
	return -1
}

//export pleachgo_tasks
func pleachgo_tasks(handle C.uintptr_t, out *C.int32_t, most C.int) C.int {
	return list(commOf(handle).on().Tasks(), out, most)
}

//export pleachgo_failed
func pleachgo_failed(handle C.uintptr_t, out *C.int32_t, most, acknowledge C.int) C.int {
	if acknowledge != 0 {
		return list(commOf(handle).on().AckFailed(), out, most)
	}
	return list(commOf(handle).on().Failed(), out, most)
}

// list writes numbers to memory for the first of them, and returns how many there are.
func list(numbers []int, out *C.int32_t, most C.int) C.int {
	into := slice[int32](unsafe.Pointer(out), C.size_t(max(most, 0)))
	for i := range min(len(into), len(numbers)) {
		into[i] = int32(numbers[i])
	}
	return C.int(len(numbers))
}

//export pleachgo_fencing_token
func pleachgo_fencing_token(handle C.uintptr_t, task C.int, out *C.uint64_t) C.int {
	token, owned := commOf(handle).on().FencingToken(int(task))
	*out = C.uint64_t(token)
	if owned {
		return 1
	}
	return 0
}

//export pleachgo_revoke
func pleachgo_revoke(handle C.uintptr_t) C.int {
	commOf(handle).on().Revoke()
	return C.PLEACH_OK
}

//export pleachgo_hold
func pleachgo_hold(handle C.uintptr_t) C.int {
	c := commOf(handle)
	release := c.on().Hold()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, release)
	return C.PLEACH_OK
}

//export pleachgo_release
func pleachgo_release(handle C.uintptr_t) C.int {
	c := commOf(handle)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.holds) == 0 {
		return C.PLEACH_INVALID
	}
	c.holds[0]()
	c.holds = c.holds[1:]
	return C.PLEACH_OK
}
