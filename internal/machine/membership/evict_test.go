package membership

import (
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// newEvictGroup returns a group whose version tells why members are evicted.
func newEvictGroup(t *testing.T, size int, version uint16) *network {
	n := newNetwork(t, 0, 1, nil)
	first := firstView(size)
	var members []Member
	for _, m := range first.Members.All() {
		m := *m
		m.Version = version
		members = append(members, m)
	}
	first.Version, first.Members = version, MembersOf(members...)
	for _, m := range first.Members.All() {
		n.start(n.addHost(*m), first)
	}
	n.checker.views[first.Number] = first
	return n
}

func (n *network) evict(by, who int, cause Cause) error {
	m := n.hosts[who].self
	err := n.hosts[by].m.Evict(n.now, m.Rank, m.Incarnation, cause)
	n.pump(n.hosts[by])
	return err
}

// A live member is evicted, although it coordinates and no detector suspects it; a detector that
// trusts it changes nothing. Every member, the evicted one included, learns the same cause.
func TestEvict(t *testing.T) {
	for _, test := range []struct {
		version   uint16
		cause     Cause
		want      reason
		told      Cause // to the evicted member
		by, whose int
	}{
		{wire.EvictVersion, OperatorEvicted, reason{OperatorEvicted, 3}, OperatorEvicted, 3, 0},
		{wire.EvictVersion, Revoked, reason{Revoked, 1}, Revoked, 1, 4},
		{wire.EvictVersion, Revoked, reason{Revoked, 0}, Revoked, 0, 2},
		{wire.EvictVersion - 1, Revoked, reason{Suspected, 3}, Suspected, 3, 0},
	} {
		n := newEvictGroup(t, 5, test.version)
		if err := n.evict(test.by, test.whose, test.cause); err != nil {
			t.Fatal(err)
		}
		gone := n.hosts[test.whose]
		n.hosts[test.by].m.Trust(n.now, gone.self.Rank, gone.self.Incarnation)
		over := func() bool {
			return gone.m.done != nil && n.hosts[test.by].m.view.Number == 2
		}
		if !n.run(20*time.Second, over) {
			t.Fatalf("%+v: no view without it:\n%s", test, n.situation())
		}
		var evicted *EvictedError
		if _, err := gone.m.State(); !errors.As(err, &evicted) || evicted.Cause != test.told || evicted.By != 2 {
			t.Errorf("%+v: it is told %v", test, err)
		}
		for _, h := range n.hosts {
			if h != gone && h.m.view.Number == 2 && (h.m.view.Members.Len() != 4 || h.m.history[0].reasons[0] != test.want) {
				t.Errorf("%+v: %s has %v for %v", test, who(h.self), h.m.view.String(), h.m.history[0].reasons)
			}
		}
	}
}

// An operator's eviction is refused if the others cannot decide without the member, and ends if
// they cannot any more. A revoked member is out in any case.
func TestEvictNeedsQuorum(t *testing.T) {
	n := newEvictGroup(t, 3, wire.EvictVersion)
	if err := n.evict(1, 1, OperatorEvicted); !errors.Is(err, ErrEvictSelf) {
		t.Errorf("itself: %v", err)
	}
	if err := n.hosts[1].m.Evict(n.now, 2, 7, OperatorEvicted); !errors.Is(err, ErrEvictGone) {
		t.Errorf("another incarnation: %v", err)
	}
	asked := n.hosts[2].m
	asked.Suspect(n.now, 1, 1)
	var lost *QuorumError
	if err := n.evict(2, 0, OperatorEvicted); !errors.As(err, &lost) || lost.Reachable != 1 || lost.Needed != 2 {
		t.Errorf("without a quorum of the others: %v", err)
	}
	asked.Trust(n.now, 1, 1)
	if err := asked.Evict(n.now, 0, 1, OperatorEvicted); err != nil {
		t.Fatal(err)
	}
	asked.Suspect(n.now, 1, 1) // before anything was sent
	asked.consider(n.now)
	if len(asked.suspicions.own) != 1 || asked.suspicions.own[0].rank != 1 {
		t.Errorf("it still suspects %v", asked.suspicions.own)
	}
	if err := asked.Evict(n.now, 0, 1, Revoked); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := asked.Quorum(); ok || len(asked.suspicions.own) != 2 {
		t.Errorf("a revoked member counts: %v", asked.suspicions.own)
	}
	n.hosts[1].m.Leave(n.now)
	asked.end(ErrLeft)
	if err := asked.Evict(n.now, 0, 1, Revoked); !errors.Is(err, ErrEvictGone) {
		t.Errorf("a member that has left evicts: %v", err)
	}
}

// A revocation outweighs an operator's eviction, and both a suspicion and a leave, whatever comes
// first.
func TestEvictionOutweighs(t *testing.T) {
	n := newEvictGroup(t, 5, wire.EvictVersion)
	m := n.hosts[0].m
	m.handleLeave(n.now, 3, 1)
	for _, cause := range []Cause{OperatorEvicted, Revoked, OperatorEvicted} {
		if err := m.Evict(n.now, 3, 1, cause); err != nil {
			t.Fatal(err)
		}
	}
	m.Suspect(n.now, 3, 1)
	m.suspicions.reported = []reported{{report{2, []suspect{{3, 1, 0}}}, 2, 2}}
	v := &value{removed: newSet(5)}
	v.removed.add(3)
	m.composeReasons(v)
	if v.reasons[0] != (reason{Revoked, 0}) {
		t.Errorf("%v", v.reasons)
	}
}
