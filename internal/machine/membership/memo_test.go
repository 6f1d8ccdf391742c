package membership

import (
	"errors"
	"testing"
)

// Machines that share what they work out act as those that do not, whatever
// happens to them.
func TestSharingChangesNothing(t *testing.T) {
	for seed := range uint64(60) {
		apart := runSchedule(t, seed)
		s := newSchedule(t, seed)
		for _, h := range s.n.hosts {
			h.m.memo = s.n.hosts[0].m.memo
		}
		if err := s.run(); err != nil || s.totals != apart {
			t.Errorf("seed %d: %+v, %v; without sharing: %+v", seed, s.totals, err, apart)
		}
	}
}

func TestSibling(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	first := n.hosts[0].m
	m, err := first.Sibling(2, n.hosts[2].log)
	if err != nil || m.config.Self != n.hosts[2].self || m.self != 2 || m.memo != first.memo {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := first.Sibling(3, nil); !errors.Is(err, ErrView) {
		t.Errorf("rank 3 of 3: %v", err)
	}
}

// Members of one process that get the same value share the view that follows from it, and only
// those: if members ever disagreed, sharing would not hide it.
func TestSiblingsShareTheNextView(t *testing.T) {
	v := firstView(3)
	first, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Machine, *value){
		"":                func(*Machine, *value) {},
		"another number":  func(_ *Machine, v *value) { v.number++ },
		"another version": func(_ *Machine, v *value) { v.version++ },
		"more slots":      func(_ *Machine, v *value) { v.slots++ },
		"a member less":   func(_ *Machine, v *value) { v.removed.add(2) },
		"another reason":  func(_ *Machine, v *value) { v.reasons[0].cause = Departed },
		"a joiner": func(_ *Machine,
			v *value,
		) {
			v.added = append(v.added, Member{Rank: 1, Identity: "j", Incarnation: 2})
		},
		"a meta":             func(_ *Machine, v *value) { v.changed[0].Meta = "y" },
		"another cut":        func(_ *Machine, v *value) { v.cut[0].Next++ },
		"other members":      func(m *Machine, _ *value) { m.view.Members = firstView(3).Members },
		"a later view":       func(m *Machine, _ *value) { m.view.Number++ },
		"a meta more, alike": func(_ *Machine, v *value) { v.changed = append(v.changed, v.changed...) },
	} {
		of := func() *value {
			changed := *v.Members.At(0)
			changed.Meta = "x"
			w := &value{
				number: 2, slots: 3, removed: newSet(3), reasons: []reason{{Suspected, 0}}, changed: []Member{changed},
				cut: []Position{{0, 1, 1, 0}},
			}
			w.removed.add(1)
			return w
		}
		m, err := first.Sibling(2, forgetfulLog{})
		if err != nil {
			t.Fatal(err)
		}
		next, err := first.apply(of())
		if err != nil {
			t.Fatal(err)
		}
		w := of()
		change(m, w)
		if got, _ := m.apply(w); (got == next) != (what == "") {
			t.Errorf("%q: the next view is shared: %t", what, got == next)
		}
	}
}
