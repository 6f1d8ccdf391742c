package session

import (
	"slices"
	"testing"
)

// A client sends its commands in order, again from the first one without a result on, and gets
// each result once. If it is forgotten, all that waits ends, and it begins anew.
func TestClientSendsAgainWhatHasNoResult(t *testing.T) {
	c := NewClient[string](ClientID{1})
	for _, name := range []string{"a", "b", "c"} {
		c.Propose("j", []byte(name), name)
	}
	r := NewReplicas(map[string]Machine{"j": new(journal)})
	number := uint64(0)
	send := func() (outcome Outcome) {
		machine, data, ok := c.Next()
		if !ok {
			t.Fatal("nothing to send")
		}
		number++
		_, outcome, _ = r.Apply(number, machine, data)
		return outcome
	}
	never := func() ClientID { t.Fatal("another name"); return ClientID{} }
	first := send()
	send() // its result gets lost
	if done := c.Complete(&first, never); !slices.Equal(done, []string{"a"}) || c.Complete(&first, never) != nil ||
		c.Pending() != 2 {
		t.Errorf("%v, %d wait", done, c.Pending())
	}
	c.Again()
	again := send()
	if string(again.Result) != "after b" || r.Repeated != 1 || r.Applied != 2 {
		t.Errorf("%q, %d applied", again.Result, r.Applied)
	}
	if done := c.Complete(&Outcome{Forgotten: true}, func() ClientID { return ClientID{2} }); !slices.Equal(done,
		[]string{"b", "c"}) || c.ID() != (ClientID{2}) {
		t.Errorf("%v", done)
	}
	c.Propose("j", []byte("d"), "d")
	if o := send(); o.Forgotten || o.Seq != 1 {
		t.Errorf("%+v", o)
	}
}
