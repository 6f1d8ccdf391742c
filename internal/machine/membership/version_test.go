package membership

import (
	"errors"
	"slices"
	"testing"
)

// newOldGroup returns a group of protocol version 4 whose members speak those versions.
func newOldGroup(t *testing.T, versions ...uint16) *network {
	v := firstView(len(versions))
	members := slices.Collect(v.Members.all())
	for i := range members {
		members[i].Version = versions[i]
	}
	n := newNetwork(t, 0, 1, nil)
	first := View{Number: 1, Version: 4, Slots: v.Slots, Members: MembersOf(members...)}
	for _, m := range first.Members.All() {
		n.start(n.addHost(*m), first)
	}
	n.checker.views[first.Number] = first
	return n
}

// all yields copies of the members.
func (l Members) all() func(yield func(Member) bool) {
	return func(yield func(Member) bool) {
		for _, m := range l.All() {
			if !yield(*m) {
				return
			}
		}
	}
}

func (n *network) raise(h *host, version uint16) error {
	err := h.m.RaiseVersion(n.now, version)
	n.pump(h)
	return err
}

// A member that is asked to raises the version for all, although the coordinator dies.
func TestRaiseVersion(t *testing.T) {
	n := newOldGroup(t, 5, 5, 6, 5, 5)
	if err := n.raise(n.hosts[3], 5); err != nil {
		t.Fatal(err)
	}
	n.kill(0)
	n.suspect(n.hosts[2], n.hosts[0].self)
	n.pump(n.hosts[2])
	if !n.run(60e9, func() bool { return n.agreed() && n.hosts[1].m.view.Version == 5 }) {
		t.Fatalf("no agreement:\n%s", n.situation())
	}
	n.settle()
	for _, h := range n.hosts[1:] {
		if v := h.m.View(); v.Version != 5 || h.m.raise != (raise{until: h.m.raise.until}) {
			t.Errorf("%s has version %d, %+v", who(h.self), v.Version, h.m.raise)
		}
	}
	before := n.hosts[1].m.view.Number
	if err := n.raise(n.hosts[4], 5); err != nil {
		t.Error(err)
	}
	if v := n.settle(); v.Number != before {
		t.Errorf("nothing has changed, but there is %v", v)
	}
}

// A member that does not speak the version prevents it, and so does a process that joins at
// the same time. A process that does not speak the version of the view is refused.
func TestVersionIsPrevented(t *testing.T) {
	n := newOldGroup(t, 5, 4, 5)
	var old *VersionError
	if err := n.raise(n.hosts[2], 5); !errors.As(err, &old) || old.Member.Rank != 1 || old.Version != 5 {
		t.Errorf("raised: %v", err)
	}
	n.leave(n.hosts[1])
	if !n.run(60e9, func() bool { return n.agreed() && n.hosts[0].m.view.Members.Len() == 2 }) {
		t.Fatalf("no agreement:\n%s", n.situation())
	}
	m := n.hosts[0].m
	if err := n.raise(n.hosts[0], 5); err != nil {
		t.Error(err)
	}
	joiner := n.addHost(Member{Identity: "old", Address: "at old", Nonce: 7, Version: 4})
	n.requestJoin(joiner)
	if v := n.settle(); v.Version != 4 || v.Members.Len() != 3 || m.raises() {
		t.Errorf("%v has version %d", v, v.Version)
	}
	for _, version := range []uint16{3, 6} {
		m.Join(n.now, 0, Member{Identity: "other", Address: "at other", Nonce: 8, Version: version}, false)
		if a, ok := m.Answers(); !ok || !errors.As(a.Err, &old) || old.Version != 4 || old.Member.Version != version {
			t.Errorf("a process of version %d: %v", version, a.Err)
		}
	}
}

// No proposal lowers the version, or has a member that does not speak it.
func TestVersionIsChecked(t *testing.T) {
	m := newOldGroup(t, 5, 5, 6).hosts[0].m
	joiner := Member{Rank: 3, Identity: "new", Incarnation: 2, Nonce: 1, Version: 4}
	good := func() *value {
		return &value{number: 2, version: 4, slots: 4, removed: newSet(3), added: []Member{joiner}}
	}
	if v, err := m.apply(good()); err != nil || v.Version != 4 {
		t.Error(err)
	}
	for name, corrupt := range map[string]func(v *value){
		"lower":       func(v *value) { v.version = 3 },
		"a joiner":    func(v *value) { v.added[0].Version = 3 },
		"too high":    func(v *value) { v.version, v.added = 6, nil },
		"not by all":  func(v *value) { v.version = 5 },
		"not spoken ": func(v *value) { v.version = 7 },
	} {
		v := good()
		corrupt(v)
		if _, err := m.apply(v); !errors.Is(err, ErrView) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := m.View()
	v.Version = 6
	if _, err := DecodeView(v.Encode(nil)); !errors.Is(err, ErrView) {
		t.Errorf("a view that members do not speak: %v", err)
	}
}

// Members that begin together begin with the highest version that all speak.
func TestFirstVersion(t *testing.T) {
	v, err := FirstView([]Member{{Identity: "a", Version: 6}, {Identity: "b", Version: 5}, {Identity: "c", Version: 7}})
	if err != nil || v.Version != 5 {
		t.Errorf("version %d, %v", v.Version, err)
	}
}

// A request for a version that the group has already, or that not all members speak, is none.
func TestRequestsForVersions(t *testing.T) {
	for version, taken := range map[uint16]bool{3: false, 4: false, 5: true, 6: false} {
		m := newOldGroup(t, 5, 6, 5).hosts[0].m
		m.handleRaise(1, version)
		if m.hasRequests() != taken {
			t.Errorf("version %d: taken %t", version, m.hasRequests())
		}
	}
}
