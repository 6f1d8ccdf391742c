package membership

// Members join, leave and come back.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Changes that arrive during a view change are batched into the next one: a herd of
// hundreds is let in within O(1) views.
func TestHerdJoins(t *testing.T) {
	n := newNetwork(t, 4, 1, nil)
	for i := range 300 {
		n.join(fmt.Sprint("new", i), "")
	}
	v := n.settle()
	if v.Members.Len() != 304 || v.Number > 5 {
		t.Fatalf("300 joined in %d views: %v", v.Number-1, v)
	}
	t.Logf("300 joined in %d views, %d frames", v.Number-1, sum(n.frames))
}

func sum(counts [Kinds]int) int {
	total := 0
	for _, c := range counts {
		total += c
	}
	return total
}

func TestLeave(t *testing.T) {
	for _, leaver := range []int{0, 3, 6} {
		n := newNetwork(t, 7, 1, nil)
		h := n.hosts[leaver]
		n.leave(h)
		v := n.settle()
		wantRanks(t, v, without(7, protocol.Rank(leaver)))
		if state, err := h.m.State(); state != Left || !errors.Is(err, ErrLeft) {
			t.Fatalf("rank %d is %v: %v", leaver, state, err)
		}
	}
}

// All leave at once, and the last one too.
func TestEverybodyLeaves(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	for _, h := range n.hosts {
		n.leave(h)
	}
	gone := func() bool {
		for _, h := range n.hosts {
			if s, _ := h.m.State(); s != Left {
				return false
			}
		}
		return true
	}
	if !n.run(time.Minute, gone) {
		t.Fatal(n.situation())
	}
}

// "Recovered nodes may re-join with their original ID" (thesis §3.2), also if
// nobody has noticed yet that they were gone, and even if the coordinator is one
// who has never seen them.
func TestRejoinKeepsItsRank(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		n := newNetwork(t, 8, 1, nil)
		n.kill(5)
		if noticed {
			n.suspectAll(5)
			n.settle()
		}
		n.restart(n.hosts[5])
		v := n.settle()
		if m, _ := v.Member(5); m.Identity != "p5" || m.Incarnation != v.Number || v.Members.Len() != 8 {
			t.Fatalf("noticed %v: %v with %+v", noticed, v, m)
		}
	}
}

func TestHoleIsReused(t *testing.T) {
	n := newNetwork(t, 6, 1, nil)
	n.kill(2, 4)
	n.suspectAll(2, 4)
	n.settle()
	n.join("newcomer", "")
	v := n.settle()
	wantRanks(t, v, without(6, 4))
	if m, _ := v.Member(2); m.Identity != "newcomer" {
		t.Fatalf("rank 2 is %+v", m)
	}
	// Rank 2 is no longer free for who had it; 4 is, and is closer than a new one.
	n.restart(n.hosts[2])
	v = n.settle()
	if m, _ := v.Member(4); m.Identity != "p2" || v.Slots != 6 {
		t.Fatalf("rank 4 is %+v of %v", m, v)
	}
}

func TestIncarnations(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	m := n.hosts[0].m
	m.Suspect(n.now, 3, 0) // an earlier start of rank 3
	n.pump(n.hosts[0])
	n.run(time.Second, nil)
	if m.view.Number != 1 {
		t.Fatalf("an old suspicion led to %v", &m.view)
	}
	n.join("newcomer", "")
	v := n.settle()
	newcomer := v.Members.At(v.identity("newcomer"))
	if newcomer.Incarnation != v.Number {
		t.Fatalf("%+v joined in %v", newcomer, v)
	}
	m.Join(n.now, 2, *newcomer, false)
	if a, ok := m.Answers(); !ok || a.Err != nil || a.Rank != newcomer.Rank {
		t.Fatalf("who is in already got %+v", a)
	}
	m.Join(n.now, 3, Member{Nonce: 1}, false)
	if a, ok := m.Answers(); !ok || !errors.Is(a.Err, ErrView) {
		t.Fatalf("a candidate without a name got %+v", a)
	}
}

// Two processes with one identity at one address are one after the other: the first has ended, and
// is told so at once.
func TestLaterCandidateAtOneAddress(t *testing.T) {
	a := newAsker(t, nil)
	candidate := func(nonce uint64, address string) Member {
		return Member{Identity: "new", Address: address, Nonce: nonce, Version: a.view.Version}
	}
	a.Join(a.now, 1, candidate(7, "h:1"), false)
	a.Join(a.now, 2, candidate(7, "h:1"), false) // the same process
	a.Join(a.now, 3, candidate(8, "h:2"), false) // elsewhere: it may be another one
	other := candidate(6, "h:1")
	other.Identity = "other"
	a.Join(a.now, 5, other, false)
	if _, ok := a.Answers(); ok {
		t.Error("one is answered that waits")
	}
	a.Join(a.now, 4, candidate(9, "h:1"), false)
	for _, token := range []uint64{1, 2} {
		if got, ok := a.Answers(); !ok || got.Token != token || !errors.Is(got.Err, ErrSuperseded) {
			t.Errorf("%+v", got)
		}
	}
	if got, ok := a.Answers(); ok {
		t.Errorf("%+v", got)
	}
}

// A request that is not repeated is forgotten when its time is over.
func TestRequestsAreForgotten(t *testing.T) {
	for _, early := range []protocol.Time{0, 1} {
		a := newAsker(t, nil)
		const until = 50
		a.candidates = []candidate{{until: until}}
		a.metas = []metaRequest{{until: until}}
		a.raise.version, a.raise.until = 9, until
		a.forgetCandidates(until - early)
		if kept := len(a.candidates) + len(a.metas) + int(a.raise.version)/9; kept != 3*int(early) {
			t.Errorf("%d before the end: %d requests", early, kept)
		}
	}
}

// Up to FlatThreshold participants, the owner of a ballot asks all of them itself.
func TestFewParticipantsAreFlat(t *testing.T) {
	for _, threshold := range []int{4, 5} {
		a := newAsker(t, func(c *Config) { c.FlatThreshold = threshold })
		p := a.newBallotState(Ballot{1, 0}, set(nil).complement(5))
		if want := threshold == 5; p.flat != want || (len(p.children) == 4) != want {
			t.Errorf("threshold %d: flat %t, %v", threshold, p.flat, p.children)
		}
	}
}

// Of two candidates with one identity, the coordinator keeps the first, unless the second has its
// address. A request that is repeated counts for longer.
func TestCandidatesWithOneIdentity(t *testing.T) {
	for _, c := range []struct {
		nonce   uint64
		address string
		taken   bool
	}{{7, "h:1", true}, {7, "h:2", true}, {8, "h:1", true}, {8, "h:2", false}} {
		a := newAsker(t, nil)
		of := func(nonce uint64, address string) candidate {
			return candidate{Member: Member{
				Rank: protocol.NoRank, Identity: "new", Address: address, Nonce: nonce,
				Version: a.view.Version,
			}}
		}
		a.receive(t, 1, frame{kind: JoinRequest, candidate: of(7, "h:1")})
		until := a.candidates[0].until
		a.now += millisecond
		a.receive(t, 1, frame{kind: JoinRequest, candidate: of(c.nonce, c.address)})
		got := a.candidates[0]
		if taken := got.until > until; len(a.candidates) != 1 || taken != c.taken || taken &&
			(got.Nonce != c.nonce || got.Address != c.address) {
			t.Errorf("nonce %d at %s: %+v", c.nonce, c.address, a.candidates)
		}
	}
}

// A member that leaves answers the candidate that waits for it with the view that has admitted
// it. Another process with its identity is not the candidate.
func TestLeaverAnswersItsCandidate(t *testing.T) {
	for _, nonce := range []uint64{7, 8} {
		a := newAsker(t, nil)
		a.Join(a.now, 1, Member{Identity: "new", Address: "x", Nonce: 7, Version: a.view.Version}, false)
		a.Leave(a.now)
		joined := Member{Rank: 0, Identity: "new", Address: "x", Nonce: nonce, Incarnation: 2, Version: a.view.Version}
		a.receive(t, 1, frame{kind: Commit, root: 1, value: &value{
			number: 2, version: a.view.Version, slots: 5,
			removed: set{1}, reasons: make([]reason, 1), added: []Member{joined},
		}})
		got, ok := a.Answers()
		if !ok || (got.Err == nil) != (nonce == 7) || got.Err == nil && (got.Rank != 0 || got.View.Number != 2) {
			t.Errorf("the process with nonce %d is admitted: %+v", nonce, got)
		}
	}
}

// A group that is full refuses candidates, and makes no views for those that wait.
func TestFullGroup(t *testing.T) {
	v := firstView(MaxSlots - 1)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b"} {
		if err := m.handleJoinRequest(1, candidate{Member: Member{Identity: name, Nonce: uint64(1 + i)}}); err != nil {
			t.Fatal(err)
		}
	}
	next := m.compose(set(nil).complement(MaxSlots-1), nil)
	if len(next.added) != 1 || next.slots != MaxSlots {
		t.Fatalf("%d are added, in %d slots", len(next.added), next.slots)
	}
	if err := m.Learn(1, Decisions{[]*value{next}}); err != nil {
		t.Fatal(err)
	}
	if m.view.Members.Len() != MaxSlots || m.hasRequests() {
		t.Errorf("%d members, %d candidates", m.view.Members.Len(), len(m.candidates))
	}
	m.Join(1, 1, Member{Identity: "c", Nonce: 9}, false)
	if len(m.answers) != 1 || !errors.Is(m.answers[0].Err, ErrFull) {
		t.Errorf("%+v", m.answers)
	}
	if err := m.handleJoinRequest(1, candidate{Member: Member{Identity: "c", Nonce: 9}}); err != nil ||
		len(m.candidates) > 0 {
		t.Errorf("%d candidates: %v", len(m.candidates), err)
	}
}

// A view admits as many candidates as fit into a frame, and changes as many metas. The others wait
// for the next one.
func TestViewsAreBounded(t *testing.T) {
	const each, fit = 512, addedBytes / 512 // bytes of a member, and how many fit
	v := firstView(600)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
	if err != nil {
		t.Fatal(err)
	}
	filled := func(of *Member) string { return strings.Repeat("x", each-len(appendMember(nil, of))) }
	for i := range 600 {
		c := candidate{Member: Member{Identity: fmt.Sprint("new", i), Nonce: 1}}
		c.Meta = filled(&c.Member)
		if err := m.handleJoinRequest(1, c); err != nil {
			t.Fatal(err)
		}
		of := v.Members.At(i)
		m.handleMetaChange(1, of.Rank, 1, attributes{meta: filled(of)})
	}
	for _, want := range [][2]int{{fit, 0}, {600 - fit, 2*fit - 600}, {0, 1200 - 2*fit}} {
		next := m.compose(set(nil).complement(m.view.Members.Len()), nil)
		if got := [2]int{len(next.added), len(next.changed)}; got != want {
			t.Errorf("view %d has %d joiners and %d metas, want %v", next.number, got[0], got[1], want)
		}
		if err := m.Learn(1, Decisions{[]*value{next}}); err != nil {
			t.Fatal(err)
		}
	}
	if m.hasRequests() {
		t.Errorf("%d candidates and %d metas wait", len(m.candidates), len(m.metas))
	}
}

// A member answers as many candidates as may wait for it, once they are members, and refuses one
// more. The coordinator keeps as many as may wait there.
func TestMostCandidates(t *testing.T) {
	a := newAsker(t, nil)
	next := &value{number: 2, version: a.view.Version, slots: 5 + maxPending, removed: newSet(5)}
	for i := range protocol.Rank(maxPending + 1) {
		c := Member{
			Rank: 5 + i, Identity: fmt.Sprint("new", i), Address: fmt.Sprint(i), Incarnation: 2, Nonce: 9,
			Version: a.view.Version,
		}
		a.Join(a.now, uint64(i), c, false)
		if i < maxPending {
			next.added = append(next.added, c)
		}
	}
	if got, ok := a.Answers(); !ok || !errors.Is(got.Err, ErrFull) || got.Token != maxPending {
		t.Errorf("one more: %+v", got)
	}
	a.receive(t, 1, frame{kind: Commit, root: 1, value: next})
	for i := range uint64(maxPending) {
		if got, ok := a.Answers(); !ok || got.Err != nil || got.Token != i || got.View.Number != 2 {
			t.Fatalf("candidate %d: %+v, %t", i, got.Err, ok)
		}
	}
	for i := range maxCandidates + 1 {
		if err := a.handleJoinRequest(a.now, candidate{Member: Member{Identity: fmt.Sprint("later", i), Nonce: 9}}); err !=
			nil {
			t.Fatal(err)
		}
	}
	if len(a.candidates) != maxCandidates {
		t.Errorf("%d candidates are kept", len(a.candidates))
	}
}
