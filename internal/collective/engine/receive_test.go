package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// Whatever bytes arrive, the engine handles them or says that they are malformed, and a
// call still ends.
func FuzzReceive(f *testing.F) {
	m := taskMessage{signature: Signature{Kind: Barrier, Root: NoRoot, Length: NoLength}, envelope: envelope{from: 1}}
	f.Add(m.append(nil))
	f.Add(joined((&progressReport{request: true, next: 3}).bytes()))
	f.Add((&query{call: 1, lowWater: 1}).bytes())
	f.Add(slices.Concat((&header{msgType: typeAbort}).bytes(), []byte{reasonOther, 0, 0, 0, 1, 'x'}))
	a := agreementMessage{phase: typeVote, signature: Signature{Kind: Agree, Root: NoRoot, Length: NoLength}}
	f.Add(joined(a.bytes()))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := New(Config{Size: 2, Link: &counter{}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
		defer cancel()
		if err := e.Receive(1, slices.Clone(b)); err != nil && !errors.Is(err, ErrMessage) {
			t.Fatal(err)
		}
		_ = e.Comm().Do(ctx, m.signature, func(t *Task) error {
			_, err := t.Receive(1, 0)
			return err
		})
	})
}

func joined(head, body []byte) []byte { return slices.Concat(head, body) }
