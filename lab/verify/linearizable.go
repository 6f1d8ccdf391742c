package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Registers are checked for linearizability (Herlihy & Wing 1990) by porcupine, each for
// itself. A write whose caller has no answer may take effect at any time, or never; a read
// without an answer says nothing.

// undecidedAfter is how long porcupine may think about one register.
const undecidedAfter = 20 * time.Second

// access is the input of an operation.
type access struct {
	write bool
	value string
}

// register is the model: it begins empty, and a read returns what was written last.
func register() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if a := input.(access); a.write {
				return true, a.value
			}
			return output == state, state
		},
		DescribeOperation: func(input, output any) string {
			if a := input.(access); a.write {
				return "write " + a.value
			}
			return "read " + output.(string)
		},
	}
}

// checkRegisters checks all registers. It returns how many calls had an answer, and how many
// registers were too hard.
func (c *checker) checkRegisters() (calls, undecided int) {
	for key, ops := range c.operations() {
		calls += len(ops)
		switch porcupine.CheckOperationsTimeout(register(), ops, undecidedAfter) {
		case porcupine.Illegal:
			c.violated("registers are linearizable", ops[0].Call, nil,
				"register %d: its %d reads and writes have no order that explains them", key, len(ops))
		case porcupine.Unknown:
			undecided++
		}
	}
	return calls, undecided
}

// call is a call of a client.
type call struct {
	Event
	process  string
	client   int
	answered int64 // when; 0: never
	result   string
}

// eachCall calls f for each call that was done, or may have been.
func (c *checker) eachCall(f func(call)) {
	for client, h := range c.histories {
		calls := map[int]Event{}
		for _, e := range h.events {
			switch e.Type {
			case evCall:
				calls[e.Op] = e
			case evReturn:
				if e.Err == "" {
					f(call{calls[e.Op], h.process, client, e.At, e.Value})
				}
				delete(calls, e.Op)
			}
		}
		for _, e := range calls {
			f(call{Event: e, process: h.process, client: client})
		}
	}
}

// operations returns the operations of each register.
func (c *checker) operations() map[int][]porcupine.Operation {
	byKey := map[int][]porcupine.Operation{}
	c.eachCall(func(k call) {
		op := porcupine.Operation{
			ClientId: k.client, Input: access{k.Write, k.Value}, Call: k.At, Output: k.result,
			Return: k.answered,
		}
		switch {
		case k.Key <= queueKey:
			return
		case k.answered == 0 && !k.Write:
			return
		case k.answered == 0:
			op.Return = math.MaxInt64
		}
		byKey[k.Key] = append(byKey[k.Key], op)
	})
	for key, ops := range byKey {
		byKey[key] = withoutUnread(ops)
		slices.SortFunc(byKey[key], func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	}
	return byKey
}

// withoutUnread leaves out writes without an answer that no read has returned: there is an
// order with them exactly if there is one without, and porcupine is exponential in them.
func withoutUnread(ops []porcupine.Operation) []porcupine.Operation {
	read := map[string]bool{}
	for _, op := range ops {
		if !op.Input.(access).write {
			read[op.Output.(string)] = true
		}
	}
	return slices.DeleteFunc(ops, func(op porcupine.Operation) bool {
		a := op.Input.(access)
		return a.write && op.Return == math.MaxInt64 && !read[a.value]
	})
}
