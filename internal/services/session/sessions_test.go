package session

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// journal is a machine that keeps all commands.
type journal struct{ bytes.Buffer }

func (j *journal) Apply(command []byte) []byte {
	j.Write(command)
	return fmt.Appendf(nil, "after %s", command)
}

func (j *journal) Snapshot(w io.Writer) error { _, err := w.Write(j.Bytes()); return err }
func (j *journal) Restore(r io.Reader) error {
	j.Reset()
	_, err := j.ReadFrom(r)
	return err
}

// give applies a command as the message of a number.
func give(r *Replicas, number uint64, client byte, seq, waiting uint64) (Outcome, bool) {
	data := encode(ClientID{client}, seq, waiting, fmt.Appendf(nil, "%d.%d ", client, seq))
	_, o, ok := r.Apply(number, "j", data)
	return o, ok
}

// A process that sends commands again, from an earlier one on and at any time, has each applied
// once and in order, and gets the result that it had.
func TestCommandsThatComeAgainAreAppliedOnce(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		j := new(journal)
		r := NewReplicas(map[string]Machine{"j": j})
		const commands = 8
		for number, done := uint64(1), uint64(0); done < commands; number++ {
			seq := 1 + rng.Uint64N(commands)
			o, ok := give(&r, number, 7, seq, max(done, 1)) // it has the results before the last one
			switch {
			case done == 0 && seq > 1:
				if !ok || !o.Forgotten {
					t.Fatalf("seed %d: %d begins a session", seed, seq)
				}
			case ok != (seq <= done+1):
				t.Fatalf("seed %d: %d after %d: %v", seed, seq, done, ok)
			case ok && seq > done:
				done = seq
			}
			if ok && !o.Forgotten && seq == done && string(o.Result) != fmt.Sprintf("after 7.%d ", seq) {
				t.Fatalf("seed %d: %q for %d", seed, o.Result, seq)
			}
			if rng.IntN(4) == 0 { // another member goes on
				var state bytes.Buffer
				if err := r.Snapshot(&state); err != nil {
					t.Fatal(err)
				}
				j = new(journal)
				r = NewReplicas(map[string]Machine{"j": j})
				if err := r.Restore(&state); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want := "7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 "; j.String() != want {
			t.Fatalf("seed %d: %s", seed, j)
		}
	}
}

// The process that has proposed nothing for longest is forgotten, and is told so.
func TestSessionsAreBounded(t *testing.T) {
	r := NewReplicas(map[string]Machine{"j": new(journal)})
	number := uint64(1)
	give(&r, number, 1, 1, 1)
	for i := range maxSessions {
		number++
		client := ClientID{2, byte(i), byte(i >> 8)}
		r.Apply(number, "j", encode(client, 1, 1, nil))
	}
	if o, ok := give(&r, number+1, 1, 2, 2); !ok || !o.Forgotten || len(r.sessions) != maxSessions {
		t.Errorf("%+v, %v, %d sessions", o, ok, len(r.sessions))
	}
}

// Members have the same machines, or a joiner is refused.
func TestMachinesDiffer(t *testing.T) {
	var state bytes.Buffer
	one := NewReplicas(map[string]Machine{"j": new(journal)})
	if err := one.Snapshot(&state); err != nil {
		t.Fatal(err)
	}
	for _, machines := range []map[string]Machine{{"k": new(journal)}, {"j": new(journal), "k": new(journal)}} {
		other := NewReplicas(machines)
		if err := other.Restore(bytes.NewReader(state.Bytes())); err == nil {
			t.Errorf("%d machines: no error", len(machines))
		}
	}
}

// Bytes from another member do not crash this one.
func FuzzRestore(f *testing.F) {
	one := NewReplicas(map[string]Machine{"j": new(journal)})
	give(&one, 1, 1, 1, 1)
	var state bytes.Buffer
	_ = one.Snapshot(&state)
	f.Add(state.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		r := NewReplicas(map[string]Machine{"j": new(journal)})
		_ = r.Restore(bytes.NewReader(b))
		_, _, _ = r.Apply(1, "j", b)
	})
}

// Results are kept as long as their process may ask for them, and no longer. What is too short to
// be a command is none.
func TestResultsAreDropped(t *testing.T) {
	r := NewReplicas(map[string]Machine{"j": new(journal)})
	for seq := uint64(1); seq <= 5; seq++ {
		give(&r, seq, 1, seq, max(seq, 2)-1) // it has those before the last one
		if n := len(r.sessions[ClientID{1}].results); n != int(min(seq, 2)) {
			t.Errorf("%d results after %d commands", n, seq)
		}
	}
	data := encode(ClientID{2}, 1, 1, nil)
	if _, _, ok := r.Apply(6, "j", data[:len(data)-1]); ok {
		t.Error("half a command was applied")
	}
	if _, _, ok := r.Apply(6, "j", data); !ok || r.Applied != 6 {
		t.Errorf("an empty command was not: %d", r.Applied)
	}
}
