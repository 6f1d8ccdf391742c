package tcp

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// process describes one that is started with a view.
type process struct {
	rank               protocol.Rank
	incarnation, nonce uint64
}

// startProcess starts a process of an open group at an index of the addresses. Its view
// has the given number and members, all of which listen at the addresses of their ranks.
func startProcess(t *testing.T, p process, at int, n *places, view uint64, members ...process) *member {
	t.Helper()
	tr, err := New(Config{
		Group: "test", Rank: p.rank, Open: true, Listener: n.listeners[at], Incarnation: p.incarnation, Nonce: p.nonce,
		Secret:     n.secret,
		BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{tr, newRecorder()}
	m.SetView(n.view(view, members...))
	if err := tr.Start(m.recorder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// places are where the processes of a test listen.
type places struct {
	secret    []byte // of the group; nil: none
	listeners []net.Listener
	addresses []string
}

func newPlaces(t *testing.T, n int) *places {
	t.Helper()
	listeners, addresses := listen(t, n)
	p := &places{addresses: addresses}
	for _, l := range listeners {
		p.listeners = append(p.listeners, l)
		t.Cleanup(func() { _ = l.Close() })
	}
	return p
}

// reopen listens again at an address whose process has ended.
func (n *places) reopen(t *testing.T, at int) {
	t.Helper()
	l, err := net.Listen("tcp", n.addresses[at])
	if err != nil {
		t.Fatal(err)
	}
	n.listeners[at] = l
	t.Cleanup(func() { _ = l.Close() })
}

func (n *places) view(number uint64, members ...process) transport.View {
	return transport.View{Number: number, Member: func(rank protocol.Rank) (transport.Member, bool) {
		i := slices.IndexFunc(members, func(m process) bool { return m.rank == rank })
		if i < 0 {
			return transport.Member{}, false
		}
		m := members[i]
		return transport.Member{
			Rank: m.rank, ID: "id", Address: n.addresses[m.rank], Incarnation: m.incarnation,
			Nonce: m.nonce,
		}, true
	}}
}

// sendUntil sends to a peer until a condition holds.
func sendUntil(t *testing.T, m *member, to protocol.Rank, what string, holds func() bool) {
	t.Helper()
	testutil.Eventually(t, what, func() bool {
		if holds() {
			return true
		}
		_ = m.Send(to, []byte("frame"))
		return false
	}, func() any { return fmt.Sprint(m.story(to), m.lastCause(to)) })
}

// A process that is not in the view of another one learns which process has its rank,
// and the member's connection stays.
func TestRemovedProcessLearnsWhichOneHasItsRank(t *testing.T) {
	for name, secret := range map[string][]byte{"plain": nil, "secret": []byte("a secret of some length")} {
		t.Run(name, func(t *testing.T) { testRemovedProcess(t, secret) })
	}
}

func testRemovedProcess(t *testing.T, secret []byte) {
	checkGoroutines(t)
	n := newPlaces(t, 3)
	n.secret = secret
	a, b := process{0, 1, 10}, process{1, 9, 11}
	member0 := startProcess(t, a, 0, n, 9, a, b)
	member1 := startProcess(t, b, 1, n, 9, a, b)
	sendUntil(t, member1, 0, "the member connects", func() bool { return len(member0.received(1)) > 0 })
	for name, old := range map[string]process{"former": {1, 4, 12}, "unknown rank": {2, 1, 13}} {
		p := startProcess(t, old, 2, n, old.incarnation, a, old)
		var removed *transport.RemovedError
		sendUntil(t, p, 0, name+" is told", func() bool { return errors.As(p.lastCause(0), &removed) })
		if removed.View != 9 || name == "former" && (removed.Holder == nil || removed.Holder.Address != n.addresses[1] ||
			removed.Holder.Incarnation != 9) {
			t.Errorf("%s: %+v", name, removed)
		}
		_ = p.Close()
		n.reopen(t, 2)
	}
	if s := member0.story(1); s != "up 9" {
		t.Errorf("the member: %s", s)
	}
	if member0.peers.get(2) != nil {
		t.Error("a rank that no member has is kept")
	}
}

// A process that a later view has admitted waits until the other side has that view.
func TestEarlyProcessWaitsForItsView(t *testing.T) {
	checkGoroutines(t)
	n := newPlaces(t, 2)
	a, b := process{0, 1, 10}, process{1, 5, 11}
	member0 := startProcess(t, a, 0, n, 4, a)
	joiner := startProcess(t, b, 1, n, 5, a, b)
	if err := joiner.Send(0, []byte("first")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if s := member0.story(1) + joiner.story(0); s != "" {
		t.Errorf("before the view: %s", s)
	}
	member0.SetView(n.view(5, a, b))
	sendUntil(t, joiner, 0, "it arrives", func() bool { return len(member0.received(1)) > 0 })
	if first := member0.received(1)[0]; string(first) != "first" {
		t.Errorf("%q arrives first", first)
	}
}

// Another process at the address of a member shows that the member is gone, be its
// nonce known from the view or from the member's connection.
func TestOtherProcessAtTheAddressOfAMember(t *testing.T) {
	checkGoroutines(t)
	for name, known := range map[string]uint64{"by the view": 11, "by its connection": 0} {
		n := newPlaces(t, 2)
		a, b := process{0, 1, 10}, process{1, 1, known}
		member0 := startProcess(t, a, 0, n, 1, a, b)
		member1 := startProcess(t, process{1, 1, 11}, 1, n, 1, a, b)
		sendUntil(t, member0, 1, "the member connects", func() bool { return member0.story(1) != "" })
		_ = member1.Close()
		n.reopen(t, 1)
		startProcess(t, process{1, 1, 99}, 1, n, 1, a, b)
		sendUntil(t, member0, 1, name+" it is found", func() bool {
			var other *transport.OtherProcessError
			return errors.As(member0.lastCause(1), &other) && other.Incarnation > 0
		})
	}
}

// The first view tells a process which incarnation it is; later ones do not.
func TestFirstViewNamesTheIncarnation(t *testing.T) {
	checkGoroutines(t)
	n := newPlaces(t, 2)
	a, b := process{0, 1, 10}, process{1, 3, 11}
	other := startProcess(t, a, 0, n, 3, a, b)
	tr, err := New(Config{Group: "test", Rank: 1, Open: true, Listener: n.listeners[1], Incarnation: 99, Nonce: b.nonce})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{tr, newRecorder()}
	m.SetView(n.view(3, a, b))
	m.SetView(n.view(4, a, process{1, 4, 11}))
	if err := m.Start(m.recorder); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sendUntil(t, m, 0, "it connects", func() bool { return other.story(1) != "" })
	if s := other.story(1); s != "up 3" {
		t.Error(s)
	}
}

// A process that claims the rank and the incarnation of a member has it looked for: if the member
// is gone, that is noticed although nobody sends to it. A member that is connected stays so.
func TestClaimHasTheMemberLookedFor(t *testing.T) {
	checkGoroutines(t)
	n := newPlaces(t, 3)
	a, b, c := process{0, 1, 10}, process{1, 1, 11}, process{2, 1, 12}
	member0 := startProcess(t, a, 0, n, 1, a, b, c)
	member2 := startProcess(t, c, 2, n, 1, a, b, c)
	sendUntil(t, member2, 0, "a member connects", func() bool { return len(member0.received(2)) > 0 })
	for i, claimed := range []process{{2, 1, 99}, {1, 1, 98}} {
		if i > 0 {
			n.reopen(t, 1)
		}
		other := startProcess(t, claimed, 1, n, 1, a, claimed)
		sendUntil(t, other, 0, "it is refused", func() bool {
			return other.wasDown(0, func(cause error) bool { return errors.Is(cause, ErrTaken) })
		})
		if claimed.rank == 1 {
			eventually(t, "it is found at the member's address", func() bool {
				return member0.wasDown(1, func(cause error) bool { return errors.As(cause, new(*transport.OtherProcessError)) })
			})
		}
		_ = other.Close()
	}
	if s := member0.story(2); s != "up 1" || member0.Stats().Dials == 0 {
		t.Errorf("the member that is connected: %s; %d dials", s, member0.Stats().Dials)
	}
}

// A view makes no peers: a large one costs a member only those that it talks to. A peer
// that is made later is that of the present view.
func TestViewMakesNoPeers(t *testing.T) {
	checkGoroutines(t)
	n := newPlaces(t, 3)
	a, b, c := process{0, 1, 10}, process{1, 1, 11}, process{2, 2, 12}
	m := startProcess(t, a, 0, n, 1, a, b)
	m.SetView(n.view(2, a, c))
	for p := range m.peers.all() {
		t.Errorf("peer %d was made", p.rank)
	}
	for rank, want := range map[protocol.Rank]bool{1: false, 2: true} {
		p := m.peer(rank)
		p.mu.Lock()
		if p.dialable() != want || (p.member != nil) != want {
			t.Errorf("peer %d of view 2: may be dialed: %v, member %+v", rank, p.dialable(), p.member)
		}
		p.mu.Unlock()
	}
	m.SetView(n.view(3, a, b))
	if m.member(1) == nil || m.member(2) != nil {
		t.Errorf("view 3 has %+v and %+v", m.member(1), m.member(2))
	}
}
