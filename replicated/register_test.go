package replicated_test

// A table as a state machine, and the model of it that histories are checked with.

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// registers are values by name. Commands are "set KEY VALUE" and "swap KEY OLD NEW"; both return
// the value before.
type registers map[string]string

func (r registers) Apply(command []byte) []byte {
	words := strings.Fields(string(command))
	before := r[words[1]]
	if words[0] == "set" || before == words[2] {
		r[words[1]] = words[len(words)-1]
	}
	return []byte(before)
}

func (r registers) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
func (r registers) Restore(from io.Reader) error {
	clear(r)
	return json.NewDecoder(from).Decode(&r)
}

// input is an operation on one key: a command, or a read if that is empty.
type input struct{ key, command string }

// output is what it has returned. If unknown, it may have happened or not.
type output struct {
	value   string
	unknown bool
}

// model is a register of each key.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := make(map[string][]porcupine.Operation)
		for _, o := range history {
			by[o.Input.(input).key] = append(by[o.Input.(input).key], o)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		before, o := state.(string), out.(output)
		after := before
		if command := in.(input).command; command != "" {
			r := registers{in.(input).key: before}
			r.Apply([]byte(command))
			after = r[in.(input).key]
		}
		return o.unknown || o.value == before, after
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprint(in, " → ", out) },
}

// checkHistory checks that a history is linearizable.
func checkHistory(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	unknown := 0
	for i := range history {
		if history[i].Output.(output).unknown {
			unknown++
		}
	}
	if result := porcupine.CheckOperationsTimeout(model, history, 30*time.Second); result != porcupine.Ok {
		t.Errorf("%d operations: %v", len(history), result)
	}
	t.Logf("%d operations, %d of them with an unknown end", len(history), unknown)
}

// The check finds a read of an old value.
func TestHistoryWithAnOldValueIsFound(t *testing.T) {
	history := []porcupine.Operation{
		{Input: input{"k", "set k 1"}, Call: 0, Output: output{}, Return: 1},
		{ClientId: 1, Input: input{"k", ""}, Call: 2, Output: output{value: ""}, Return: 3},
	}
	if porcupine.CheckOperations(model, history) {
		t.Error("not found")
	}
}
