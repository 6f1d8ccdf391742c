package membership

import (
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// withObserving is a group in which some ranks are observers.
func withObserving(t *testing.T, size int, observers ...protocol.Rank) *network {
	t.Helper()
	return newNetworkOf(t, withObservers(firstView(size), observers...), 1, nil)
}

// All observers die at once: three voters of a hundred members go on.
func TestVotersGoOnWithoutObservers(t *testing.T) {
	var observers []protocol.Rank
	for r := range protocol.Rank(100) {
		if r%40 != 7 {
			observers = append(observers, r)
		}
	}
	n := withObserving(t, 100, observers...)
	for _, r := range observers {
		n.kill(int(r))
	}
	n.suspectAll(observers...)
	if v := n.settle(); v.Number != 2 || v.Members.Len() != 3 || v.Leader().Rank != 7 {
		t.Errorf("%v", v)
	}
}

// Observers that lack a majority of the voters decide nothing, and say so.
func TestObserversDecideNothing(t *testing.T) {
	n := withObserving(t, 7, 0, 1, 2, 3)
	n.kill(4, 5)
	n.suspectAll(4, 5)
	n.run(time.Second, nil)
	for _, h := range n.hosts {
		if !h.live() {
			continue
		}
		_, err := h.m.State()
		var lost *QuorumError
		if !errors.As(err, &lost) || lost.Reachable != 1 || lost.Members != 3 || lost.Needed != 2 || lost.Observers != 4 {
			t.Errorf("%s in %v: %v", who(h.self), &h.m.view, err)
		}
	}
	if n.failure != nil {
		t.Error(n.failure)
	}
}

// The coordinator is the lowest voter, also if observers have lower ranks and report.
func TestLowestVoterCoordinates(t *testing.T) {
	n := withObserving(t, 6, 0, 1, 3)
	n.spy = func(from *host, kind Kind) {
		if (kind == Prepare || kind == Propose) && from.self.Observer {
			t.Errorf("%s coordinates", who(from.self))
		}
	}
	n.kill(4)
	m, _ := n.hosts[0].m.view.Member(4)
	n.suspect(n.hosts[0], m) // an observer finds out
	n.pump(n.hosts[0])
	if v := n.settle(); v.Number != 2 || v.Has(4) {
		t.Fatalf("%v", v)
	}
	n.kill(2)
	n.suspectAll(2)
	n.run(10*time.Second, nil)
	if v := n.hosts[5].m.View(); v.Number != 2 {
		t.Errorf("half of the voters, without the lowest, decide %v", &v)
	}
}

// Members change their roles by a view, and the last voter stays one.
func TestRolesChange(t *testing.T) {
	n := withObserving(t, 4, 3)
	ask := func(rank int, observer bool) error {
		err := n.hosts[rank].m.SetObserver(n.now, observer)
		n.pump(n.hosts[rank])
		return err
	}
	for _, rank := range []int{0, 1, 2} { // all at once: one is left
		if err := ask(rank, true); err != nil {
			t.Fatal(err)
		}
	}
	n.settle()
	n.run(time.Second, nil)
	v := n.settle()
	if v.Voters() != 1 || v.Number > 4 {
		t.Fatalf("%v has %d voters", v, v.Voters())
	}
	last := v.Leader().Rank
	if err := ask(int(last), true); !errors.Is(err, ErrLastVoter) {
		t.Errorf("the last voter is demoted: %v", err)
	}
	if err := ask(3, false); err != nil {
		t.Fatal(err)
	}
	n.run(time.Second, nil)
	if v := n.settle(); v.Voters() != 2 || v.Members.Find(3).Observer {
		t.Errorf("%v has %d voters", v, v.Voters())
	}
	if err := ask(int(last), true); err != nil {
		t.Fatal(err)
	}
	n.run(time.Second, nil)
	if v := n.settle(); v.Voters() != 1 || v.Leader().Rank != 3 {
		t.Errorf("%v is led by %v", v, v.Leader())
	}
	if n.failure != nil {
		t.Error(n.failure)
	}
}

// The last voter leaves when all observers have.
func TestLastVoterLeavesLast(t *testing.T) {
	n := withObserving(t, 3, 1, 2)
	n.leave(n.hosts[0])
	n.run(10*time.Second, nil)
	if v := n.hosts[1].m.View(); v.Number != 1 || n.hosts[0].m.done != nil {
		t.Fatalf("%v, the voter: %v", &v, n.hosts[0].m.done)
	}
	n.leave(n.hosts[1])
	n.leave(n.hosts[2])
	n.run(10*time.Second, nil)
	for _, h := range n.hosts {
		if !errors.Is(h.m.done, ErrLeft) {
			t.Errorf("%s: %v", who(h.self), h.m.done)
		}
	}
}

// A group has observers only when all of its members know what they are.
func TestObserverNeedsVersion(t *testing.T) {
	v := withObservers(firstView(3))
	v.Version = ObserverVersion - 1
	n := newNetworkOf(t, v, 1, nil)
	var old *ObserverVersionError
	var refused error
	n.answers = func(a Answer) { refused = a.Err }
	c := Member{Identity: "o", Address: "at o", Nonce: 9, Version: wire.Newest(), Observer: true}
	n.hosts[0].m.Join(n.now, 1, c, false)
	n.pump(n.hosts[0])
	if !errors.As(refused, &old) || old.Version != ObserverVersion-1 || !RefusesObserver(refused) {
		t.Errorf("an observer joins a group of version %d: %v", v.Version, refused)
	}
	if err := n.hosts[0].m.SetObserver(n.now, true); !errors.As(err, &old) {
		t.Errorf("a member is demoted in a group of version %d: %v", v.Version, err)
	}
	if err := n.hosts[0].m.RaiseVersion(n.now, ObserverVersion); err != nil {
		t.Fatal(err)
	}
	n.pump(n.hosts[0])
	n.run(time.Second, nil)
	if err := n.hosts[0].m.SetObserver(n.now, true); err != nil {
		t.Error(err)
	}
}

// Frames and views without observers have no byte more, and builds of the version before refuse
// those with observers.
func TestObserverIsAFlag(t *testing.T) {
	v := withObservers(firstView(3))
	o := withObservers(v, 2)
	a, b := v.Encode(nil), o.Encode(nil)
	differ := 0
	for i := range a {
		if a[i] != b[i] {
			differ++
		}
	}
	if len(a) != len(b) || differ != 1 {
		t.Errorf("%d and %d bytes, of which %d differ", len(a), len(b), differ)
	}
	if again, err := DecodeView(b); err != nil || !again.Equal(&o) {
		t.Errorf("decoded: %v", err)
	}
	for name, wrong := range map[string]View{
		"no voters": withObservers(v, 0, 1, 2),
		"too early": func() View { w := withObservers(v, 2); w.Version = ObserverVersion - 1; return w }(),
	} {
		if _, err := DecodeView(wrong.Encode(nil)); !errors.Is(err, ErrView) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bugs in the counting of quorums are found within a thousand schedules.
func TestPlantedQuorums(t *testing.T) {
	if testutil.RaceEnabled || testing.Short() {
		t.Skip("it takes many schedules")
	}
	most := func(in, of int, tie bool) bool { return 2*in > of || 2*in == of && tie }
	count := func(v *View, s set, which func(*Member) bool) (in, of int) {
		for i, m := range v.Members.All() {
			if which(m) {
				of++
				if s.has(i) {
					in++
				}
			}
		}
		return in, of
	}
	all := func(*Member) bool { return true }
	votes := func(m *Member) bool { return !m.Observer }
	watches := func(m *Member) bool { return m.Observer }
	lowest := func(v *View, s set) bool { i, _ := v.index(v.Leader().Rank); return s.has(i) }
	for name, quorum := range map[string]func(v *View, s set) bool{
		"observers count": func(v *View, s set) bool { in, of := count(v, s, all); return most(in, of, s.has(0)) },
		"only observers count": func(v *View, s set) bool {
			in, of := count(v, s, watches)
			return of == 0 && most(s.count(), v.Members.Len(), s.has(0)) || most(in, of, false)
		},
		"voters or members": func(v *View, s set) bool {
			in, of := count(v, s, votes)
			n, members := count(v, s, all)
			return most(in, of, lowest(v, s)) || most(n, members, s.has(0))
		},
		"voters and members": func(v *View, s set) bool {
			in, of := count(v, s, votes)
			n, members := count(v, s, all)
			return most(in, of, lowest(v, s)) && most(n, members, s.has(0))
		},
		"observers among those counted": func(v *View, s set) bool {
			_, of := count(v, s, votes)
			return most(s.count(), of, false)
		},
		"observers in the whole": func(v *View, s set) bool {
			in, _ := count(v, s, votes)
			return most(in, v.Members.Len(), lowest(v, s))
		},
		"any half": func(v *View, s set) bool { in, of := count(v, s, votes); return most(in, of, true) },
		"half with rank 0, which may observe": func(v *View, s set) bool {
			in, of := count(v, s, votes)
			return most(in, of, s.has(0) || lowest(v, s))
		},
		"half with the highest or the lowest voter": func(v *View, s set) bool {
			in, of := count(v, s, votes)
			highest := 0
			for i, m := range v.Members.All() {
				if votes(m) {
					highest = i
				}
			}
			return most(in, of, lowest(v, s) || s.has(highest))
		},
		"one voter less": func(v *View, s set) bool { in, of := count(v, s, votes); return 2*in+1 >= of },
		"no bug":         countsMost,
		"any voter":      func(v *View, s set) bool { in, _ := count(v, s, votes); return in > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(1000) {
				s := newScheduleOf(t, 3*seed+2, func(c *Config) { c.isQuorum = quorum })
				s.n.strict = true
				if err := s.run(); err != nil {
					t.Logf("seed %d: %v", seed, err)
					if name == "no bug" {
						t.Error("found where there is none")
					}
					return
				}
			}
			if name != "no bug" {
				t.Error("a thousand schedules do not find it")
			}
		})
	}
}
