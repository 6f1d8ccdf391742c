package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// setMeta has a host change its meta.
func (n *network) setMeta(h *host, meta string) {
	n.logf("%s sets its meta to %q", who(h.self), meta)
	if err := h.m.SetMeta(n.now, meta); err != nil {
		n.t.Fatal(err)
	}
	n.pump(h)
}

// All members see the metas that members have set last in the same view, although the
// coordinator dies meanwhile, and no member counts as another one for it.
func TestSetMeta(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		const size = 9
		n := newNetwork(t, size, 1, way)
		for i, h := range n.hosts {
			n.setMeta(h, "first")
			n.setMeta(h, fmt.Sprint("of ", i))
		}
		n.kill(0)
		n.suspect(n.hosts[5], n.hosts[0].self)
		n.pump(n.hosts[5])
		done := func() bool {
			for _, h := range n.hosts[1:] {
				if h.m.changesMeta() {
					return false
				}
			}
			return n.agreed()
		}
		if !n.run(60e9, done) {
			t.Fatalf("no agreement:\n%s", n.situation())
		}
		for _, h := range n.hosts[1:] {
			for i := 1; i < size; i++ {
				if m, _ := h.memberIn(n.hosts[i].self.Rank); m.Meta != fmt.Sprint("of ", i) ||
					m.Incarnation != n.hosts[i].self.Incarnation {
					t.Errorf("%s sees %+v", who(h.self), m)
				}
			}
		}
		before := n.settle().Number
		n.setMeta(n.hosts[3], "of 3") // as it is
		if v := n.settle(); v.Number != before {
			t.Errorf("nothing has changed, but there is %v", v)
		}
	})
}

// A member that takes its request back gets no view for it.
func TestMetaIsWithdrawn(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	for _, h := range n.hosts[:2] { // the coordinator's own, too
		h.m.status.due = n.now + second
		n.setMeta(h, "x")
		n.run(5e6, nil)
		n.setMeta(h, "")
		report := frame{kind: MetaChange, view: 1, incarnation: 1, wanted: attributes{}}
		if err := n.hosts[0].m.Receive(n.now, 1, report.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	n.hosts[0].m.handleMetaChange(n.now, 0, 1, attributes{})
	if len(n.hosts[0].m.metas) > 0 {
		t.Errorf("the coordinator still has %v", n.hosts[0].m.metas)
	}
	n.run(2e9, nil)
	if n.settle().Number != 1 {
		t.Errorf("%v", n.settle())
	}
}

// A member whose meta has changed since it joined is restored as it was last.
func TestMetaIsRestored(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	h := n.hosts[1]
	n.setMeta(h, "new")
	if !n.run(60e9, func() bool { return !h.m.changesMeta() && n.agreed() }) {
		t.Fatalf("no agreement:\n%s", n.situation())
	}
	s, err := DecodeSavedVote(h.m.encodeState())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(Config{Log: &voterLog{}}, s); err != nil || s.Self.Meta != "new" {
		t.Errorf("%+v, %v", s.Self, err)
	}
}

// A meta is bounded, wherever it comes from, and a proposal changes nothing but metas.
func TestMetaIsChecked(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	m := n.hosts[0].m
	if err := m.SetMeta(n.now, strings.Repeat("x", MaxMeta+1)); !errors.Is(err, ErrView) {
		t.Errorf("too long: %v", err)
	}
	good := func() *value {
		changed := *m.view.Members.At(1)
		changed.Meta = "new"
		return &value{number: m.view.Number + 1, slots: m.view.Slots, removed: newSet(3), changed: []Member{changed}}
	}
	if _, err := m.apply(good()); err != nil {
		t.Error(err)
	}
	for name, corrupt := range map[string]func(v *value){
		"another address":     func(v *value) { v.changed[0].Address = "elsewhere" },
		"another incarnation": func(v *value) { v.changed[0].Incarnation++ },
		"no member":           func(v *value) { v.changed[0].Rank = 7 },
		"a removed member":    func(v *value) { v.removed.add(1) },
		"twice":               func(v *value) { v.changed = append(v.changed, v.changed[0]) },
		"too long":            func(v *value) { v.changed[0].Meta = strings.Repeat("x", MaxMeta+1) },
	} {
		v := good()
		corrupt(v)
		if _, err := m.apply(v); !errors.Is(err, ErrView) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A meta may be as long as MaxMeta, and no longer.
func TestLongestMeta(t *testing.T) {
	a := newAsker(t, nil)
	if err := a.SetMeta(a.now, strings.Repeat("x", MaxMeta)); err != nil || len(a.wanted.meta) != MaxMeta {
		t.Errorf("%d bytes are wanted: %v", len(a.wanted.meta), err)
	}
	if err := a.SetMeta(a.now, strings.Repeat("y", MaxMeta+1)); !errors.Is(err, ErrView) || a.wanted.meta[0] != 'x' {
		t.Errorf("one more: %v", err)
	}
}
