package main

// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"context"
	"maps"
	"runtime"
	"runtime/cgo"
	"slices"
	"unsafe"

	"github.com/pleach-go/pleach/collective"
)

// element is a type of elements.
type element interface {
	// do makes a call that has elements.
	do(ctx context.Context, on collective.Comm, call *C.pleach_call) error
}

// elements makes calls over elements of one type.
type elements[T any] map[C.int32_t]collective.Operator[T] // by pleach_op

// do implements [element].
func (e elements[T]) do(ctx context.Context, on collective.Comm, call *C.pleach_call) error {
	if err := checkMemory[T](call); err != nil {
		return err
	}
	in, root, r := slice[T](call.in, call.count), int(call.root), result[T]{call}
	switch call.kind {
	case C.PLEACH_BROADCAST:
		return r.elements(collective.Broadcast(ctx, on, root, in, options[T, []T, []T](on, call)...))
	case C.PLEACH_GATHER:
		return r.parts(collective.Gather(ctx, on, root, in, options[T, []T, [][]T](on, call)...))
	case C.PLEACH_ALLGATHER:
		return r.parts(collective.Allgather(ctx, on, in, options[T, []T, [][]T](on, call)...))
	case C.PLEACH_SCATTER:
		return r.elements(collective.Scatter(ctx, on, root, partsOf[T](call), options[T, [][]T, []T](on, call)...))
	case C.PLEACH_ALLTOALL:
		return r.parts(collective.Alltoall(ctx, on, partsOf[T](call), options[T, [][]T, [][]T](on, call)...))
	case C.PLEACH_EXCHANGE:
		o := options[T, map[int][]T, map[int][]T](on, call)
		if call.mutual != 0 {
			o = append(o, collective.Mutual())
		}
		return r.byTask(collective.Exchange(ctx, on, partsByTask[T](call), o...))
	}
	op, err := e.operator(call)
	if err != nil {
		return err
	}
	o := options[T, []T, []T](on, call)
	switch call.kind {
	case C.PLEACH_REDUCE:
		return r.elements(collective.Reduce(ctx, on, root, in, op, o...))
	case C.PLEACH_SCAN:
		return r.elements(collective.Scan(ctx, on, in, op, o...))
	case C.PLEACH_EXSCAN:
		return r.elements(collective.Exscan(ctx, on, in, op, o...))
	case C.PLEACH_REDUCE_SCATTER:
		return r.elements(collective.ReduceScatter(ctx, on, partsOf[T](call), op, options[T, [][]T, []T](on, call)...))
	}
	return r.elements(collective.Allreduce(ctx, on, in, op, o...))
}

// operator returns the operator that a call names.
func (e elements[T]) operator(call *C.pleach_call) (collective.Operator[T], error) {
	if call.op == C.PLEACH_USER && call.combine != nil {
		callbacks := callbacksOf(call)
		return collective.Operator[T]{Name: "user", Try: func(into, left, right []T) error {
			n := len(left)
			if n == 0 {
				return nil
			}
			return callbackError("combine", func(reason *C.char) C.int {
				return C.call_combine(callbacks, unsafe.Pointer(&into[0]), unsafe.Pointer(&left[0]), unsafe.Pointer(&right[0]),
					C.size_t(n), reason)
			})
		}}, nil
	}
	op, ok := e[call.op]
	if !ok {
		return op, invalid("operator %d: type %d has none, or pleach_call.combine is missing", call.op, call._type)
	}
	return op, nil
}

// options returns the options of a call whose input and result have certain shapes: []T, [][]T or
// map[int][]T.
func options[T, In, Out any](on collective.Comm, call *C.pleach_call) []collective.Option {
	o := modeOf(call)
	var callbacks *C.callbacks
	if call.restore != nil || call.takeover != nil { // a call without them allocates nothing here
		callbacks = callbacksOf(call)
	}
	if call.restore != nil {
		o = append(o, collective.Restore(func(_ context.Context, task int) (in In, err error) {
			r := restored[T]{}
			if err := r.ask(callbacks, task); err != nil {
				return in, err
			}
			return r.shape(any(in), on.Size()).(In), nil
		}))
	}
	if call.takeover != nil {
		o = append(o, collective.Takeover(func(task int, out Out) {
			var m memory
			defer m.free()
			addParts(&m, flatten[T](out), nil)
			C.call_takeover(callbacks, C.int(task), m.parts, C.size_t(m.count))
		}))
	}
	if _, ok := any(*new(Out)).([]T); ok && call.out != nil {
		o = append(o, collective.Into(slice[T](call.out, call.out_count)))
	}
	return o
}

// restored is the input of a task, part by part.
type restored[T any] map[int][]T

// taker takes parts of any type.
type taker interface {
	put(task int, data unsafe.Pointer, count C.size_t)
}

// put implements [taker].
func (r restored[T]) put(task int, data unsafe.Pointer, count C.size_t) {
	r[task] = slices.Clone(slice[T](data, count))
}

// ask calls the program's restore.
func (r restored[T]) ask(callbacks *C.callbacks, task int) error {
	handle := cgo.NewHandle(taker(r))
	defer handle.Delete()
	input := C.pleach_input{handle: C.uintptr_t(handle)}
	return callbackError("restore", func(reason *C.char) C.int {
		return C.call_restore(callbacks, C.int(task), &input, reason)
	})
}

//export pleachgo_put
func pleachgo_put(handle C.uintptr_t, task C.int, data unsafe.Pointer, count C.size_t) C.int {
	cgo.Handle(handle).Value().(taker).put(int(task), data, count)
	return C.PLEACH_OK
}

// shape returns the input in the shape of an example.
func (r restored[T]) shape(example any, size int) any {
	switch example.(type) {
	case []T:
		for _, in := range r {
			return in
		}
		return []T(nil)
	case [][]T:
		parts := make([][]T, size)
		for task, part := range r {
			if task >= 0 && task < size {
				parts[task] = part
			}
		}
		return parts
	}
	return map[int][]T(r)
}

// part is elements of a task.
type part[T any] struct {
	task     int
	elements []T
}

// flatten returns a result of any shape as parts.
func flatten[T any](out any) (parts []part[T]) {
	switch out := out.(type) {
	case []T:
		return []part[T]{{0, out}}
	case [][]T:
		for task, elements := range out {
			parts = append(parts, part[T]{task, elements})
		}
	case map[int][]T:
		for _, task := range slices.Sorted(maps.Keys(out)) {
			parts = append(parts, part[T]{task, out[task]})
		}
	}
	return parts
}

// partsOf are the parts of a call, one for each task.
func partsOf[T any](call *C.pleach_call) (parts [][]T) {
	for _, p := range slice[C.pleach_part](unsafe.Pointer(call.parts), call.parts_count) {
		parts = append(parts, slice[T](p.data, p.count))
	}
	return parts
}

// partsByTask are the parts of a call, for some tasks.
func partsByTask[T any](call *C.pleach_call) map[int][]T {
	parts := make(map[int][]T)
	for _, p := range slice[C.pleach_part](unsafe.Pointer(call.parts), call.parts_count) {
		parts[int(p.task)] = slice[T](p.data, p.count)
	}
	return parts
}

// checkMemory refuses memory that elements of a type cannot lie in.
func checkMemory[T any](call *C.pleach_call) error {
	check := func(name string, data unsafe.Pointer, count C.size_t) error {
		if count > 0 && (data == nil || uintptr(data)%unsafe.Alignof(*new(T)) != 0) {
			return invalid("pleach_call.%s: %d elements at %p: give memory that is aligned for their type", name, count, data)
		}
		return nil
	}
	if err := check("in", call.in, call.count); err != nil {
		return err
	}
	if err := check("out", call.out, call.out_count); err != nil {
		return err
	}
	for _, p := range slice[C.pleach_part](unsafe.Pointer(call.parts), call.parts_count) {
		if err := check("parts", p.data, p.count); err != nil {
			return err
		}
	}
	return nil
}

// result hands out what a call returns.
type result[T any] struct{ call *C.pleach_call }

func (r result[T]) elements(out []T, err error) error {
	return r.set([]part[T]{{0, out}}, out != nil, err)
}

func (r result[T]) parts(out [][]T, err error) error { return r.set(flatten[T](out), out != nil, err) }

func (r result[T]) byTask(out map[int][]T, err error) error {
	return r.set(flatten[T](out), out != nil, err)
}

// set writes a result to the program's memory, or hands out the library's. Some calls have one on some
// processes only.
func (r result[T]) set(parts []part[T], present bool, err error) error {
	sometimes := r.call.kind == C.PLEACH_REDUCE || r.call.kind == C.PLEACH_GATHER || r.call.kind == C.PLEACH_EXSCAN
	if err != nil || !present && sometimes {
		return err
	}
	total := 0
	for _, p := range parts {
		total += len(p.elements)
	}
	r.call.present, r.call.result_count = 1, C.size_t(total)
	if r.call.out == nil {
		m := new(memory)
		addParts(m, parts, r.call.in)
		r.call.result, r.call.result_parts, r.call.memory = m.parts, C.size_t(len(parts)), C.uintptr_t(cgo.NewHandle(m))
		return nil
	}
	if total > int(r.call.out_count) {
		return invalid("the result has %d elements, and pleach_call.out memory for %d", total, r.call.out_count)
	}
	into := slice[T](r.call.out, r.call.out_count)
	for _, p := range parts {
		if len(p.elements) > 0 && &p.elements[0] != &into[0] { // it is there by Into
			copy(into, p.elements)
		}
		into = into[len(p.elements):]
	}
	return nil
}

// memory is what a result lies in, until the program frees it.
type memory struct {
	pinned runtime.Pinner
	parts  *C.pleach_part
	count  int
}

// addParts has C see parts. Those that lie in the program's own memory, at in, are not pinned.
func addParts[T any](m *memory, parts []part[T], in unsafe.Pointer) {
	m.count = len(parts)
	if m.count == 0 {
		return
	}
	m.parts = (*C.pleach_part)(C.calloc(C.size_t(len(parts)), C.size_t(unsafe.Sizeof(C.pleach_part{}))))
	list := unsafe.Slice(m.parts, len(parts))
	for i, p := range parts {
		list[i].task, list[i].count = C.int32_t(p.task), C.size_t(len(p.elements))
		if len(p.elements) == 0 {
			continue
		}
		data := unsafe.Pointer(&p.elements[0])
		if data != in {
			m.pinned.Pin(data)
		}
		list[i].data = data
	}
}

func (m *memory) free() {
	m.pinned.Unpin()
	C.free(unsafe.Pointer(m.parts))
}

//export pleachgo_result_free
func pleachgo_result_free(handle C.uintptr_t) {
	cgo.Handle(handle).Value().(*memory).free()
	cgo.Handle(handle).Delete()
}
