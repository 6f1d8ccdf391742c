package sequencer

import (
	"slices"
	"testing"
)

// A member that enters at a mark delivers what all others do behind it, and numbers it alike. A
// mark of a view that another process leads is refused.
func TestMemberEntersAtAMark(t *testing.T) {
	leader, joiner := Member{0, 1}, Member{1, 2}
	members := []Member{leader, joiner}
	a := New(Config{Self: leader, MaxBatch: 100})
	b := New(Config{Self: joiner, MaxBatch: 100})
	a.View(2, members, len(members))
	if a.AcceptMark(Mark{1, 7}) == nil || b.AcceptMark(Mark{2, 7}) == nil {
		t.Fatal("a mark of another view, or another leader")
	}
	var got []uint64
	cast := func() {
		for view, body, ok := a.NextCast(); ok; view, body, ok = a.NextCast() {
			a.CastDone(view, false)
			if mark, ok := DecodeMark(body); ok {
				if mark != (Mark{2, 7}) {
					t.Fatalf("mark %v", mark)
				}
				if err := b.Restore(a.Snapshot()); err != nil {
					t.Fatal(err)
				}
				b.Follow(leader.Rank)
				continue
			}
			_, _ = a.Receive(view, leader.Rank, body)
			if b.numbered > 0 { // it has entered
				messages, _ := b.Receive(view, leader.Rank, body)
				for _, m := range messages {
					got = append(got, m.Number)
				}
			}
		}
	}
	say := func(m *Machine) {
		m.Submit("t", []byte("x"))
		if f, ok := m.NextForward(); !ok || a.Accept(m.config.Self.Rank, f.Body) != nil {
			t.Fatal("not forwarded")
		}
		cast()
	}
	cast()
	say(a)
	say(a)
	if err := a.AcceptMark(Mark{2, 7}); err != nil {
		t.Fatal(err)
	}
	cast()
	say(a)
	say(b)
	if !slices.Equal(got, []uint64{3, 4}) || b.Pending() != 0 {
		t.Errorf("got %v, %d bytes pending", got, b.Pending())
	}
	if c := New(Config{Self: joiner}); c.numbered != 0 {
		t.Error("not empty")
	} else {
		c.Begin(Mark{2, Fresh}, 0)
		if c.view != 2 || c.leader != 0 {
			t.Errorf("view %d, leader %d", c.view, c.leader)
		}
	}
}
