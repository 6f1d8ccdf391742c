package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// without returns the ranks of a group of some size but for those given.
func without(size int, gone ...protocol.Rank) []protocol.Rank {
	var list []protocol.Rank
	for r := range protocol.Rank(size) {
		if !slices.Contains(gone, r) {
			list = append(list, r)
		}
	}
	return list
}

func wantRanks(t *testing.T, v *View, want []protocol.Rank) {
	t.Helper()
	if got := ranks(v); !slices.Equal(got, want) {
		t.Fatalf("%v, not ranks %v", v, want)
	}
}

// bothWays runs a test as in a large group, along the tree and with relays, and as in a
// small one.
func bothWays(t *testing.T, run func(t *testing.T, way func(*Config))) {
	t.Run("tree", func(t *testing.T) { run(t, func(c *Config) { c.FlatThreshold, c.relays = -1, []int{5, 2} }) })
	t.Run("flat", func(t *testing.T) { run(t, func(c *Config) { c.FlatThreshold = DefaultFlatThreshold }) })
}

// "Upon detecting a failure, the root is informed of the failed node and
// initiates a view change" (thesis §3.1.2): any member may die, at any level of
// the tree, and any other may notice.
func TestSingleFailure(t *testing.T) { bothWays(t, singleFailure) }

func singleFailure(t *testing.T, way func(*Config)) {
	const size = 16
	for dead := range size {
		for by := range size {
			if by == dead {
				continue
			}
			n := newNetwork(t, size, 1, way)
			n.kill(dead)
			n.suspect(n.hosts[by], n.hosts[dead].self)
			n.pump(n.hosts[by])
			v := n.settle()
			wantRanks(t, v, without(size, protocol.Rank(dead)))
			if v.Number != 2 {
				t.Fatalf("one failure took %v", v)
			}
		}
	}
}

// A tree of depth 3 and more, and deaths at every level at once: "If multiple
// nodes fail simultaneously" (thesis §3.1.4).
func TestSimultaneousFailures(t *testing.T) { bothWays(t, simultaneousFailures) }

func simultaneousFailures(t *testing.T, way func(*Config)) {
	for seed := range uint64(50) {
		n := newNetwork(t, 40, seed, way)
		n.detect = 30 * time.Millisecond
		dead := n.rng.Perm(40)[:19]
		n.kill(dead...)
		v := n.settle()
		if v.Members.Len() != 21 {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

// The coordinator and those next in line die, one after another: "a sequential
// scan suffices to designate a new root" (thesis §3.1.5).
func TestChainedCoordinatorFailures(t *testing.T) { bothWays(t, chainedCoordinatorFailures) }

func chainedCoordinatorFailures(t *testing.T, way func(*Config)) {
	for chain := 1; chain <= 4; chain++ {
		n := newNetwork(t, 11, uint64(chain), way)
		n.kill(10)
		n.suspectAll(10)
		for r := range chain {
			n.run(300*time.Microsecond, nil)
			n.kill(r)
			n.suspectAll(protocol.Rank(r))
		}
		v := n.settle()
		if v.Leader().Rank != protocol.Rank(chain) || v.Has(10) {
			t.Fatalf("after %d coordinators: %v", chain, v)
		}
	}
}

// Anybody, the coordinator and inner relays included, dies at the very moment it
// sends a frame of each kind, before or after it is on its way.
func TestDeathInEveryPhase(t *testing.T) { bothWays(t, deathInEveryPhase) }

func deathInEveryPhase(t *testing.T, way func(*Config)) {
	const size = 12
	for _, kind := range []Kind{Prepare, Promise, Propose, Accept, Commit} {
		for victim := range size - 1 {
			for which := range 4 {
				t.Run(fmt.Sprint(kind, " ", victim, " ", which), func(t *testing.T) {
					n := newNetwork(t, size, 7, way)
					n.detect = 20 * time.Millisecond
					count := 0
					n.spy = func(from *host, sent Kind) {
						if sent == kind && from.id == victim && !from.dead {
							count++
							if count == which+1 {
								n.kill(victim)
							}
						}
					}
					n.hosts[3].log.send()
					n.kill(11)
					n.suspectAll(11)
					v := n.settle()
					if n.failure != nil {
						t.Fatal(n.failure)
					}
					if n.hosts[victim].dead == v.Has(protocol.Rank(victim)) {
						t.Fatalf("victim dead %v, %v", n.hosts[victim].dead, v)
					}
				})
			}
		}
	}
}

// A suspicion that is withdrawn in time removes nobody, and roots go on.
func TestTrustInTime(t *testing.T) {
	n := newNetwork(t, 9, 1, nil)
	n.blocked = func(from, to *host) bool { return from.id == 8 || to.id == 8 } // slow
	n.join("newcomer", "")
	n.run(600*time.Millisecond, nil)
	if n.hosts[0].m.Stats().Canceled == 0 {
		t.Fatal("the attempt that waits for a slow member was not abandoned")
	}
	n.blocked = nil
	if v := n.settle(); v.Members.Len() != 10 {
		t.Fatalf("a slow member was lost: %v", v)
	}
	n.hosts[4].m.Suspect(n.now, 7, 1)
	n.hosts[4].m.Trust(n.now, 7, 1)
	n.pump(n.hosts[4])
	n.run(time.Second, nil)
	if v := n.settle(); v.Members.Len() != 10 {
		t.Fatalf("a withdrawn suspicion removed somebody: %v", v)
	}
}

// A slow member that nobody suspects does not keep roots frozen for long.
func TestSlowMemberFreezesNobodyForLong(t *testing.T) {
	n := newNetwork(t, 9, 1, nil)
	n.blocked = func(from, to *host) bool { return from.id == 8 || to.id == 8 }
	n.join("newcomer", "")
	sent := 0
	for range 100 {
		n.run(10*time.Millisecond, nil)
		if n.hosts[5].log.send() {
			sent++
		}
	}
	if sent < 15 {
		t.Fatalf("only %d of 100 messages could be sent in a second", sent)
	}
}

// Of 16, 9 go on and 7 stop and say so. When the network heals, the 7 learn that
// they are out, without anybody suspecting anything anew.
func TestPartition(t *testing.T) { bothWays(t, partition) }

func partition(t *testing.T, way func(*Config)) {
	n := newNetwork(t, 16, 1, way)
	n.detect = 30 * time.Millisecond
	n.blocked = func(from, to *host) bool { return (from.id < 7) != (to.id < 7) }
	majority := func() bool {
		for _, h := range n.hosts[7:] {
			if h.m.view.Members.Len() != 9 {
				return false
			}
		}
		return true
	}
	if !n.run(time.Minute, majority) {
		t.Fatal(n.situation())
	}
	n.run(time.Second, nil)
	for _, h := range n.hosts[:7] {
		state, err := h.m.State()
		var quorum *QuorumError
		if state != NoQuorum || !errors.As(err, &quorum) || quorum.Reachable != 7 || quorum.Needed != 8 {
			t.Fatalf("%s is %v: %v", who(h.self), state, err)
		}
	}
	n.blocked, n.detect = nil, 0
	evicted := func() bool {
		for _, h := range n.hosts[:7] {
			if s, _ := h.m.State(); s != Evicted {
				return false
			}
		}
		return true
	}
	if !n.run(time.Minute, evicted) {
		t.Fatal(n.situation())
	}
}

// Exactly half goes on if it holds the lowest rank, the other half does not.
func TestExactlyHalf(t *testing.T) {
	n := newNetwork(t, 8, 1, nil)
	n.detect = 30 * time.Millisecond
	n.blocked = func(from, to *host) bool { return (from.id < 4) != (to.id < 4) }
	n.run(5*time.Second, nil)
	for _, h := range n.hosts {
		state, _ := h.m.State()
		if h.id < 4 && (h.m.view.Members.Len() != 4 || state != Active) || h.id >= 4 && state != NoQuorum {
			t.Fatalf("%s is %v in %v", who(h.self), state, &h.m.view)
		}
	}
}

// Without majorities, the last one alive still goes on.
func TestNoQuorumNeeded(t *testing.T) {
	n := newNetwork(t, 6, 1, func(c *Config) { c.NoQuorum = true })
	n.checker.isQuorum = func(*View, set) bool { return true }
	n.detect = 20 * time.Millisecond
	n.kill(0, 1, 3, 4, 5)
	wantRanks(t, n.settle(), []protocol.Rank{2})
}

// A cut in one direction only: one of the two goes, the rest stays together.
func TestOneWayCut(t *testing.T) { bothWays(t, oneWayCut) }

func oneWayCut(t *testing.T, way func(*Config)) {
	for a := range 5 {
		for b := range 5 {
			if a == b {
				continue
			}
			n := newNetwork(t, 5, 3, way)
			n.detect = 30 * time.Millisecond
			n.blocked = func(from, to *host) bool { return from.id == a && to.id == b }
			together := func() bool {
				count := 0
				for _, h := range n.hosts {
					if s, _ := h.m.State(); s == Active && h.m.view.Members.Len() == 4 {
						count++
					}
				}
				return count == 4
			}
			if !n.run(time.Minute, together) {
				t.Fatalf("%d cut from %d: %v\n%s", b, a, n.failure, n.situation())
			}
		}
	}
}

// One who was away during some views catches up, or learns that it is too late.
func TestStragglers(t *testing.T) { bothWays(t, stragglers) }

func stragglers(t *testing.T, way func(*Config)) {
	n := newNetwork(t, 5, 1, way)
	n.join("a", "")
	n.run(10*time.Millisecond, nil)
	n.settle()
	last := n.hosts[4]
	// It takes part, but misses the decision.
	n.blocked = func(from, to *host) bool { return to == last && from.m != nil && from.m.acceptor.decided != nil }
	cut := false
	n.spy = func(from *host, kind Kind) { cut = cut || kind == Commit }
	n.join("b", "")
	n.run(time.Second, func() bool { return cut })
	n.blocked = func(from, to *host) bool { return to == last }
	n.run(500*time.Millisecond, nil)
	if last.m.view.Number != 2 || n.hosts[0].m.view.Number != 3 {
		t.Fatal(n.situation())
	}
	n.blocked = nil
	n.settle()
	// Too far behind for anything to be kept.
	n.blocked = func(from, to *host) bool { return from == last || to == last }
	n.suspectAll(last.self.Rank)
	for i := range keptCommits + 6 {
		if h := n.join(fmt.Sprint("later", i), ""); !n.run(10*time.Second, h.live) {
			t.Fatal(n.situation())
		}
	}
	n.blocked = nil
	if !n.run(time.Minute, func() bool { s, _ := last.m.State(); return s == Evicted }) {
		t.Fatal(n.situation())
	}
}

// A message that only the dead root and one other had is delivered by all, or by
// none. Its holder may die too, as soon as it has said that it holds it.
func TestSameViewDelivery(t *testing.T) { bothWays(t, sameViewDelivery) }

func sameViewDelivery(t *testing.T, way func(*Config)) {
	for holder := range 6 {
		for _, last := range []Kind{Promise, Accept, Kinds} { // what it sends last; Kinds: it lives
			n := newNetwork(t, 7, 1, way)
			n.detect = 20 * time.Millisecond
			root := n.hosts[6]
			n.blocked = func(from, to *host) bool { return from == root && to.id != holder }
			root.log.send()
			n.pump(root)
			n.run(time.Millisecond, nil)
			n.kill(6)
			n.blocked = nil
			n.spy = func(from *host, kind Kind) {
				if from.id == holder && kind == last {
					n.kill(holder)
				}
			}
			n.settle()
			if n.failure != nil {
				t.Fatalf("holder %d: %v", holder, n.failure)
			}
			if cut := n.checker.cuts[2]; !n.hosts[holder].dead && cut != "6.1<1 " {
				t.Fatalf("holder %d: delivered %q", holder, cut)
			}
		}
	}
}

// A new connection is a reason to compare views at once: what was sent before may
// be lost.
func TestUpTellsViews(t *testing.T) {
	n := newNetwork(t, 4, 1, nil)
	last := n.hosts[3]
	n.blocked = func(from, to *host) bool { return from == last || to == last }
	n.suspectAll(3)
	n.run(300*time.Millisecond, func() bool { return n.hosts[0].m.view.Number == 2 && n.hosts[2].m.view.Number == 2 })
	n.blocked = nil
	before := n.now
	last.m.Up(n.now, 1)
	n.pump(last)
	if !n.run(time.Second, func() bool { return last.m.done != nil }) || n.now-before > 10*millisecond {
		t.Fatal(n.situation())
	}
}

// A member that has decided, and waits for messages, tells those that ask about the change what
// was decided. Late answers need none.
func TestDecidedMemberTells(t *testing.T) {
	for _, f := range []frame{
		{kind: Status},
		{kind: Ping},
		{kind: Prepare, ballot: Ballot{2, 1}, members: set(nil).complement(3)},
		{kind: Propose, ballot: Ballot{1, 1}, value: &value{number: 2, slots: 3, removed: newSet(3)}},
		{kind: Accept, ballot: Ballot{1, 0}, members: set(nil).complement(3)},
		{kind: Cancel, ballot: Ballot{1, 1}},
		{kind: Pong},
		{kind: Leave},
	} {
		asks := slices.Contains([]Kind{Status, Ping, Prepare, Propose}, f.kind)
		v := firstView(3)
		self := *v.Members.At(2)
		m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
		if err != nil {
			t.Fatal(err)
		}
		decision := &value{
			number: 2, slots: 3, removed: newSet(3),
			cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
		}
		if err := m.Learn(1, Decisions{[]*value{decision}}); err != nil {
			t.Fatal(err)
		}
		f.view, f.incarnation = 1, 1
		if err := m.Receive(1, 1, f.append(nil)); err != nil {
			t.Fatal(err)
		}
		if told := len(framesOf(m, 1, Commit)[1]) == 1; told != asks {
			t.Errorf("%v: told %t", f.kind, told)
		}
	}
}

// A member that has ended, or that knows of a higher ballot or of the decision, votes no more,
// although the messages that it waited for arrive.
func TestMemberVotesNoMore(t *testing.T) {
	v := firstView(3)
	self := *v.Members.At(2)
	for what, then := range map[string]func(m *Machine){
		"":                func(*Machine) {},
		"it has ended":    func(m *Machine) { m.Removed(1, 9, nil) },
		"a higher ballot": func(m *Machine) { m.handleCancel(1, &frame{ballot: Ballot{2, 1}}) },
		"it is decided":   func(m *Machine) { _ = m.Learn(1, Decisions{[]*value{m.acceptor.current.proposal}}) },
	} {
		log := newTestLog(self, v)
		m, err := New(Config{Self: self, View: v, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []frame{
			{kind: Prepare, ballot: Ballot{1, 0}, members: set(nil).complement(3)},
			{kind: Propose, ballot: Ballot{1, 0}, value: &value{
				number: 2, slots: 3, removed: newSet(3),
				cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
			}},
		} {
			f.view, f.incarnation = 1, 1
			if err := m.Receive(1, 0, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		then(m)
		log.receive(0, datum{view: 1, root: 0, incarnation: 1})
		m.LogFlushed(2)
		m.LogFlushed(2)
		if voted := len(framesOf(m, 2, Accept)[0]); voted != map[bool]int{true: 1}[what == ""] {
			t.Errorf("%q: it votes %d times", what, voted)
		}
	}
}

// A member that is not let in any more names the process that has its identity, and no other that
// has got its rank.
func TestRemovedMemberNamesItsSuccessor(t *testing.T) {
	for _, identity := range []string{"p0", "another"} {
		a := newAsker(t, nil)
		a.Removed(a.now, a.view.Number, &Member{Identity: identity})
		if a.done != nil {
			t.Fatalf("a view that is not later ends it: %v", a.done)
		}
		leaver := newAsker(t, nil)
		leaver.Leave(leaver.now)
		leaver.Removed(leaver.now, 9, &Member{Identity: identity})
		if !errors.Is(leaver.done, ErrLeft) {
			t.Errorf("one that leaves is told that it is removed: %v", leaver.done)
		}
		a.Removed(a.now, 9, &Member{Identity: identity})
		var evicted *EvictedError
		if !errors.As(a.done, &evicted) || evicted.By != 9 || (evicted.Successor != nil) != (identity == "p0") {
			t.Errorf("its rank has %q: %v", identity, a.done)
		}
		if named := strings.Contains(fmt.Sprint(a.done), identity); named != (identity == "p0") {
			t.Errorf("its rank has %q: %v", identity, a.done)
		}
	}
}

// A member that is not in the next view ends at once, although messages are missing that no live
// member may have, and installs nothing. One that leaves delivers what is before its last view.
func TestRemovedMemberDoesNotWaitForMessages(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		v := firstView(3)
		self := *v.Members.At(2)
		log := newTestLog(self, v)
		m, err := New(Config{Self: self, View: v, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if leaves {
			m.Leave(1)
		}
		d := &value{number: 2, slots: 3, removed: set{0b100}, cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}}}
		if err := m.Learn(1, Decisions{[]*value{d}}); err != nil {
			t.Fatal(err)
		}
		if ended := m.done != nil; ended == leaves || len(log.record) > 0 {
			t.Errorf("it leaves: %t, it has ended: %t, %d views", leaves, ended, len(log.record))
		}
		log.receive(0, datum{view: 1, root: 0, incarnation: 1})
		m.LogFlushed(2)
		if errors.Is(m.done, ErrLeft) != leaves || (len(log.record) == 1) != leaves {
			t.Errorf("it leaves: %t, it has ended with %v, %d views", leaves, m.done, len(log.record))
		}
	}
}

// A change takes as long as from the first attempt that a member has heard of until the view is
// installed. A member that has not taken part does not know.
func TestStatsTellHowLongAChangeTakes(t *testing.T) {
	for _, takesPart := range []bool{true, false} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
		for round := range uint32(2) {
			a.now += second
			if takesPart {
				a.receive(t, 0, frame{kind: Prepare, ballot: Ballot{1 + round, 0}, members: set(nil).complement(5)})
			}
		}
		a.now += second
		a.receive(t, 0, frame{kind: Commit, value: &value{number: 2, version: a.view.Version, slots: 5, removed: newSet(5)}})
		want := map[bool]protocol.Time{true: 2 * second}[takesPart]
		if s := a.Stats(); s.Changes != 1 || s.Took != want {
			t.Errorf("takes part %t: %d changes, the last took %d ms", takesPart, s.Changes, s.Took/millisecond)
		}
	}
}
