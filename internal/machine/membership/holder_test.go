package membership

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// ask has a member take the request of a second process with the identity of p3, and
// returns the answer and how long it took.
func ask(n *network, at int, address string, replace bool) (a Answer, took time.Duration) {
	n.t.Helper()
	m, began := n.hosts[at].m, n.now
	m.Join(n.now, 1<<40, Member{Identity: "p3", Address: address, Nonce: 77}, replace)
	n.addHost(Member{Identity: "p3", Address: address}).dead = true
	done := false
	n.answers = func(b Answer) { a, done = b, true }
	n.pump(n.hosts[at])
	if !n.run(time.Minute, func() bool { return done }) {
		n.t.Fatalf("no answer\n%s", n.situation())
	}
	return a, time.Duration(n.now - began)
}

// A live member keeps its identity, whichever member is asked: the second process is
// refused within a round trip, and no view changes.
func TestLiveHolderKeepsItsIdentity(t *testing.T) {
	for _, at := range []int{0, 1, 3} {
		n := newNetwork(t, 5, 1, nil)
		a, took := ask(n, at, "elsewhere", false)
		var inUse *InUseError
		if !errors.As(a.Err, &inUse) || inUse.Holder.Rank != 3 || inUse.Holder.Address != "host3" || inUse.View != 1 {
			t.Fatalf("asked at rank %d: %+v", at, a)
		}
		if took > time.Millisecond {
			t.Errorf("asked at rank %d, refused after %v", at, took)
		}
		n.run(time.Second, nil)
		if n.hosts[0].m.view.Number != 1 {
			t.Errorf("asked at rank %d: %v", at, &n.hosts[0].m.view)
		}
	}
}

// A member that does not answer is replaced after ProbeTimeout, without a detector. One
// whose address the new process has, or that is suspected, is replaced at once.
func TestGoneHolderIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name, address string
		suspected     bool
		most          time.Duration
	}{
		{"silent", "elsewhere", false, 1700 * time.Millisecond},
		{"at its address", "host3", false, 100 * time.Millisecond},
		{"suspected", "elsewhere", true, 100 * time.Millisecond},
	} {
		for _, at := range []int{0, 1} {
			n := newNetwork(t, 5, 1, nil)
			n.kill(3)
			if c.suspected {
				n.suspect(n.hosts[at], n.hosts[3].self)
			}
			a, took := ask(n, at, c.address, false)
			if a.Err != nil || a.Rank != 3 || took > c.most {
				t.Errorf("%s, asked at rank %d: %+v after %v", c.name, at, a, took)
			}
		}
	}
}

// A process that insists replaces a live member, be it the coordinator, the member that
// is asked, or the only one. That one learns by which process it is replaced.
func TestReplaceALiveHolder(t *testing.T) {
	for _, c := range []struct{ leave, at int }{{0, 0}, {0, 3}, {2, 3}, {3, 4}, {4, 3}} {
		n := newNetwork(t, 5, 1, nil)
		for _, i := range []int{0, 1, 2, 4}[:c.leave] {
			n.leave(n.hosts[i])
			n.run(time.Second, nil)
		}
		n.checker.leavers[who(n.hosts[3].self)] = true
		a, took := ask(n, c.at, "elsewhere", true)
		if a.Err != nil || took > 100*time.Millisecond {
			t.Fatalf("%+v: %+v after %v", c, a, took)
		}
		n.run(time.Second, func() bool { return n.hosts[3].m.done != nil })
		var evicted *EvictedError
		if !errors.As(n.hosts[3].m.done, &evicted) || evicted.Successor == nil || evicted.Successor.Nonce != 77 ||
			evicted.Successor.Incarnation != a.View.Number {
			t.Errorf("%+v: the old process ends with %v", c, n.hosts[3].m.done)
		}
	}
}

// A member that was cut off while a second process asked for its identity is back: the
// others count it again, and the second process does not stand for its death for ever.
func TestHolderThatIsBackCounts(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	m, holder := n.hosts[0].m, n.hosts[2].self
	m.Suspect(n.now, holder.Rank, holder.Incarnation)
	m.Join(n.now, 1<<40, Member{Identity: holder.Identity, Address: "elsewhere", Nonce: 77}, false)
	if !slices.Equal(m.Unreachable(), []protocol.Rank{2}) {
		t.Fatalf("unreachable %v, want the member that is suspected", m.Unreachable())
	}
	m.Trust(n.now, holder.Rank, holder.Incarnation)
	status := frame{kind: Status, view: 1, incarnation: holder.Incarnation}
	if err := m.Receive(n.now, 2, status.append(nil)); err != nil {
		t.Fatal(err)
	}
	if got := m.Unreachable(); len(got) > 0 {
		t.Errorf("unreachable %v although it has just sent something", got)
	}
}

// A member whose identity a candidate has, and that is gone, counts as unreachable at the member
// that has found out, and at the coordinator.
func TestGoneHolderIsUnreachable(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1) })
	a.Join(a.now, 1, Member{Identity: "p3", Address: "elsewhere", Nonce: 9, Version: a.view.Version}, false)
	a.run()
	a.step(a.now + a.config.ProbeTimeout)
	if got := a.Unreachable(); !slices.Equal(got, []protocol.Rank{3}) {
		t.Errorf("unreachable at the member that is asked: %v", got)
	}
	b := newAsker(t, nil)
	b.receive(t, 1, frame{kind: JoinRequest, candidate: a.pending[0].candidate})
	if got := b.Unreachable(); !slices.Equal(got, []protocol.Rank{3}) {
		t.Errorf("unreachable at the coordinator: %v", got)
	}
}
