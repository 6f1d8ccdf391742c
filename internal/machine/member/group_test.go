package member

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

const ms protocol.Time = 1e6

// participant is a member or a voter.
type participant interface {
	Receive(now protocol.Time, from protocol.Rank, frame []byte) error
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	SendFailed(now protocol.Time, full bool)
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	Deadline() protocol.Time
	Report(now protocol.Time, r Report)
	Saved(now protocol.Time, err error)
	View() membership.View
}

// testGroup drives whole members over a network without delay.
type testGroup struct {
	t       *testing.T
	now     protocol.Time
	members []membership.Member
	roles   []participant // by rank; nil: dead
	deaf    map[protocol.Rank]bool
	changes map[protocol.Rank][]membership.Change // that each member has seen, of its last view
	disks   [][]byte
	slow    map[protocol.Rank]bool // their disks do not save for now
	unsaved map[protocol.Rank]bool // they wait for their disks
	saves   []protocol.Time        // of rank 0
	beats   map[[2]protocol.Rank]int
	due     map[protocol.Rank]protocol.Time // when they are called although nothing happens
	// frames that were read to where they stay, by their first byte
	filled map[byte]int
	fails  func(from, to protocol.Rank, frame []byte) (fails, full bool) // nil: all frames are sent
}

func newGroup(t *testing.T, size int, durable bool) *testGroup {
	g := &testGroup{
		t: t, now: 1, deaf: map[protocol.Rank]bool{}, changes: map[protocol.Rank][]membership.Change{},
		slow: map[protocol.Rank]bool{}, unsaved: map[protocol.Rank]bool{}, beats: map[[2]protocol.Rank]int{},
		due: map[protocol.Rank]protocol.Time{}, filled: map[byte]int{},
	}
	for r := range protocol.Rank(size) {
		g.members = append(g.members, membership.Member{
			Rank: r, Identity: fmt.Sprint("p", r), Address: fmt.Sprint("host", r),
			Incarnation: FirstIncarnation, Nonce: uint64(100 + r), Version: 5,
		})
	}
	g.disks, g.roles = make([][]byte, size), make([]participant, size)
	view := membership.View{Number: 1, Slots: protocol.Rank(size), Version: 5, Members: membership.MembersOf(g.members...)}
	for r, self := range g.members {
		var m *Machine
		c := Config{Self: self, View: view, Heartbeat: heartbeat.Config{Interval: 300 * ms, Timeout: 1500 * ms}}
		c.OnView = func(*membership.View) { g.changes[self.Rank] = slices.Collect(m.Changes) }
		if durable {
			c.Save = func(state []byte, _ bool) { g.save(self.Rank, state) }
		}
		var err error
		m, err = New(c)
		if err != nil {
			t.Fatal(err)
		}
		g.roles[r] = m
		m.Start(g.now)
	}
	g.connect()
	return g
}

// save takes a state for a disk.
func (g *testGroup) save(r protocol.Rank, state []byte) {
	if r == 0 {
		g.saves = append(g.saves, g.now)
	}
	g.disks[r], g.unsaved[r] = slices.Clone(state), true
}

func (g *testGroup) connect() {
	for a, role := range g.roles {
		for b, other := range g.roles {
			if a != b && role != nil && other != nil {
				role.Up(g.now, protocol.Rank(b))
			}
		}
	}
}

// run lets time pass, until a condition holds. Members are called when they want to be, when a frame
// has come, and in the beginning: the test may have asked them for something.
func (g *testGroup) run(length protocol.Time, until func() bool) bool {
	g.t.Helper()
	clear(g.due)
	for end := g.now + length; g.now < end; g.now += 5 * ms {
		for busy := true; busy; {
			busy = false
			for r, role := range g.roles {
				if role != nil && g.due[protocol.Rank(r)] <= g.now {
					busy = g.carry(protocol.Rank(r), role) || busy
				}
			}
		}
		if until != nil && until() {
			return true
		}
	}
	return false
}

// carry carries the frames of a member, and saves what it has to save.
func (g *testGroup) carry(r protocol.Rank, role participant) (any bool) {
	for n := 0; ; n++ {
		to, head, body, ok := role.Next(g.now)
		saved := g.unsaved[r] && !g.slow[r]
		if saved {
			g.unsaved[r] = false
			role.Saved(g.now, nil)
		}
		if !ok && !saved {
			break
		} else if !ok {
			continue
		}
		any = true
		if n > 10_000 {
			g.t.Fatalf("rank %d sends without end to %d at %d: %x", r, to, g.now, head)
		}
		frame := append(slices.Clone(head), body...)
		if frame[0] == heartbeatFrame {
			g.beats[[2]protocol.Rank{r, to}]++
		}
		if g.fails != nil {
			if fails, full := g.fails(r, to, frame); fails {
				role.SendFailed(g.now, full)
				continue
			}
		}
		if peer := g.roles[to]; peer != nil && !g.deaf[r] && !g.deaf[to] {
			g.due[to] = 0
			if err := g.take(peer, r, frame); err != nil {
				g.t.Errorf("rank %d refuses a frame of %d: %v", to, r, err)
			}
		}
	}
	due := role.Deadline()
	g.due[r] = due
	if due <= g.now && g.fails != nil {
		return true // a stream that was refused goes on at once
	}
	if due <= g.now {
		g.t.Fatalf("rank %d: the deadline %d is over at %d", r, due, g.now)
	}
	if m, ok := role.(*Machine); ok {
		m.Settle(g.now)
	}
	return any
}

// take passes a frame on as a transport does: the rest of a long one is read to where it stays.
func (g *testGroup) take(to participant, from protocol.Rank, frame []byte) error {
	const head = 64
	if m, ok := to.(*Machine); ok && len(frame) > head {
		if body := m.ReceiveBuffer(from, frame[:head:head], len(frame)); body != nil {
			if len(body) != len(frame)-head {
				g.t.Fatalf("%d bytes for %d of a frame that begins with %#x", len(body), len(frame)-head, frame[0])
			}
			g.filled[frame[0]]++
			copy(body, frame[head:])
			return m.BufferFilled(g.now, from, frame[:head], body)
		}
	}
	return to.Receive(g.now, from, frame)
}

// number returns the view of a rank.
func (g *testGroup) number(r int) uint64 { v := g.roles[r].View(); return v.Number }

func (g *testGroup) machine(r int) *Machine { return g.roles[r].(*Machine) }

// suspectAll has all members find a rank gone.
func (g *testGroup) suspectAll(r protocol.Rank) {
	for i, role := range g.roles {
		if role != nil && protocol.Rank(i) != r {
			role.Report(g.now, Report{Rank: r, Incarnation: FirstIncarnation})
		}
	}
}

// Members deliver what others broadcast and what they send to single members, also after one has
// died, and tell why it is gone.
func TestGroupGoesOnAfterADeath(t *testing.T) {
	g := newGroup(t, 4, false)
	say := func(text string) {
		t.Helper()
		for r, role := range g.roles {
			if role == nil {
				continue
			}
			if err := g.machine(r).Write([]byte(text), 0); err != nil {
				t.Fatal(err)
			}
			if to := (r + 1) % len(g.roles); g.roles[to] != nil {
				if err := g.machine(r).SendDirect(protocol.Rank(to), []byte(text), nil, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.run(500*ms, nil)
		for r, role := range g.roles {
			if role == nil {
				continue
			}
			got, direct := 0, 0
			for m, ok := g.machine(r).Deliver(g.now); ok; m, ok = g.machine(r).Deliver(g.now) {
				if !m.Begins && string(m.Data) == text && m.View == g.number(r) {
					got++
				}
			}
			for m, ok := g.machine(r).DeliverDirect(); ok; m, ok = g.machine(r).DeliverDirect() {
				if string(m.Data) == text {
					direct++
				}
			}
			view := g.roles[r].View()
			before := (r + len(g.roles) - 1) % len(g.roles)
			if want := map[bool]int{true: 1}[g.roles[before] != nil]; got != view.Members.Len()-1 || direct != want {
				t.Errorf("%s: rank %d has got %d of %d, and %d of %d for itself", text, r, got, view.Members.Len()-1, direct, want)
			}
			g.machine(r).FlushDirect()
			if !g.machine(r).DirectFlushed() && want(g, r) {
				t.Errorf("%s: what rank %d has sent is not acknowledged", text, r)
			}
		}
	}
	say("all")
	g.roles[3] = nil
	g.machine(1).Report(g.now, Report{Rank: 3, Incarnation: FirstIncarnation + 1})
	if len(g.machine(1).Unreachable()) > 0 {
		t.Error("a report about another process counts")
	}
	g.machine(1).Report(g.now, Report{Rank: 3, Incarnation: FirstIncarnation})
	if got := g.machine(1).Unreachable(); !slices.Equal(got, []protocol.Rank{3}) {
		t.Errorf("unreachable: %v", got)
	}
	if !g.run(5000*ms, func() bool { return g.number(0) == 2 && g.number(1) == 2 && g.number(2) == 2 }) {
		t.Fatal("no view without the dead one")
	}
	for r := range 3 {
		if c := g.changes[protocol.Rank(r)]; len(c) != 1 || c[0].Member.Rank != 3 || c[0].Cause != membership.Suspected ||
			c[0].By != 1 || g.machine(r).ViewCount() != 1 {
			t.Errorf("rank %d: %+v, %d views", r, c, g.machine(r).ViewCount())
		}
	}
	say("three")
	g.machine(2).Leave(g.now)
	if !g.run(5000*ms, func() bool { s, _ := g.machine(2).State(); return s == membership.Left && g.number(0) == 3 }) {
		t.Error("no view without the one that leaves")
	}
}

// want reports whether the next member of a rank lives.
func want(g *testGroup, r int) bool { return g.roles[(r+1)%len(g.roles)] != nil }

// A member that lacks descriptors does not take others for silent: the next rank coordinates
// instead. It holds back what its detector says of silence, until it is well again.
func TestImpairedMemberAccusesNobody(t *testing.T) {
	for _, impaired := range []bool{false, true} {
		g := newGroup(t, 5, false)
		g.run(500*ms, nil)
		g.machine(0).SetImpaired(g.now, impaired)
		g.deaf[4] = true // and no detector has found that
		g.machine(3).Leave(g.now)
		if !g.run(60_000*ms, func() bool { return g.number(0) == 2 }) {
			t.Fatalf("impaired %t: no view", impaired)
		}
		for _, c := range g.changes[0] {
			if by := map[bool]protocol.Rank{false: 0, true: 1}[impaired]; c.Member.Rank == 4 &&
				(c.Cause != membership.Unresponsive || c.By != by) {
				t.Errorf("impaired %t: %v by %d", impaired, c.Cause, c.By)
			}
		}
	}
	g := newGroup(t, 5, false)
	m := g.machine(0)
	silent := func(r protocol.Rank) Report {
		return Report{Rank: r, Incarnation: FirstIncarnation, Silent: true}
	}
	m.SetImpaired(g.now, true)
	reported := 0
	m.config.OnReport = func(Report, membership.Member) { reported++ }
	m.Report(g.now, silent(1))
	m.Report(g.now, silent(2))
	m.SetImpaired(g.now, true)
	m.Report(g.now, silent(2))
	m.Report(g.now, Report{Rank: 3, Incarnation: FirstIncarnation})
	if got := m.Unreachable(); !slices.Equal(got, []protocol.Rank{3}) {
		t.Errorf("while it is impaired: %v", got)
	}
	m.Report(g.now, Report{Rank: 1, Incarnation: FirstIncarnation, Silent: true, Alive: true})
	m.SetImpaired(g.now, false)
	if got := m.Unreachable(); !slices.Equal(got, []protocol.Rank{2, 3}) {
		t.Errorf("when it is well again: %v", got)
	}
	if reported != 3 {
		t.Errorf("%d reports count", reported)
	}
	m.Report(g.now, silent(4))
	if !slices.Equal(m.Unreachable(), []protocol.Rank{2, 3, 4}) {
		t.Error("a report of silence does not count")
	}
}

// A vote is told when it is saved, and not before. What cannot be saved is saved again, after
// longer and longer pauses.
func TestVotesWaitForTheDisk(t *testing.T) {
	g := newGroup(t, 3, true)
	g.run(100*ms, nil)
	g.slow[0], g.slow[1], g.slow[2] = true, true, true
	g.saves = nil
	g.roles[2] = nil
	g.suspectAll(2)
	if g.run(300*ms, func() bool { return g.number(0) > 1 }) || len(g.saves) != 1 {
		t.Fatalf("a view is decided without disks, or %d saves", len(g.saves))
	}
	var pauses []protocol.Time
	for range 9 {
		began, n := g.now, len(g.saves)
		g.roles[0].Saved(g.now, errors.New("the disk is full"))
		if !g.run(20_000*ms, func() bool { return len(g.saves) > n }) {
			t.Fatal("it is not saved again")
		}
		pauses = append(pauses, g.saves[n]-began)
	}
	for i, p := range pauses {
		if want := min(firstSavePause<<i, maxSavePause); p < want || p > want+5*ms {
			t.Errorf("pause %d is %d ms, want %d", i, p/ms, want/ms)
		}
	}
	if g.number(0) > 1 {
		t.Fatal("a view is decided without disks")
	}
	clear(g.slow)
	if !g.run(5000*ms, func() bool { return g.number(0) == 2 && g.number(1) == 2 }) {
		t.Error("no view with the disks")
	}
}

// A member that was started again votes with what it has saved, and a view has its new process in
// its place. Meanwhile it sends heartbeats to its neighbors, and tells members that it has none of
// the messages before the cut.
func TestRestartedVoterIsAdmitted(t *testing.T) {
	g := newGroup(t, 3, true)
	g.run(500*ms, nil)
	place, err := membership.DecodeSavedVote(g.disks[2])
	if err != nil {
		t.Fatal(err)
	}
	candidate := g.members[2]
	candidate.Nonce = 777
	installed := 0
	voter, err := NewRestartedVoter(RestartedVoterConfig{
		Saved: place, Candidate: candidate, Heartbeat: heartbeat.Config{Interval: 300 * ms, Timeout: 1500 * ms},
		Save: func(state []byte, _ bool) { g.save(2, state) }, OnView: func(*membership.View) { installed++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	g.roles[1], g.roles[2] = nil, voter // the voter's vote is needed
	clear(g.beats)
	voter.Start(g.now)
	g.connect()
	if reachable, needed, ok := voter.Quorum(); !ok || reachable != 3 || needed != 2 {
		t.Errorf("%d of %d are reachable: %t", reachable, needed, ok)
	}
	voter.Report(g.now, Report{Rank: 1, Incarnation: FirstIncarnation})
	if len(voter.Machine().Unreachable()) != 1 {
		t.Error("a report to a voter does not count")
	}
	voter.Report(g.now, Report{Rank: 1, Incarnation: FirstIncarnation, Alive: true})
	if len(voter.Machine().Unreachable()) != 0 {
		t.Error("a report to a voter is not withdrawn")
	}
	g.run(700*ms, nil)
	if g.beats[[2]protocol.Rank{2, 0}] == 0 || g.beats[[2]protocol.Rank{2, 1}] == 0 {
		t.Errorf("the heartbeats of the voter: %v", g.beats)
	}
	g.suspectAll(1)
	var answer *membership.Answer
	if !g.run(10_000*ms, func() bool { answer, err = voter.Outcome(); return answer != nil }) {
		t.Fatalf("the process is not admitted: %v", err)
	}
	if self, ok := answer.View.Member(answer.Rank); !ok || self.Nonce != 777 || answer.View.Has(1) || installed == 0 {
		t.Errorf("%v, %d installed", &answer.View, installed)
	}
	if !g.run(5000*ms, func() bool { return g.number(0) == answer.View.Number }) {
		t.Error("the other member does not install the view")
	}
	if again, _ := voter.Outcome(); again != answer {
		t.Error("the outcome is another one")
	}
}

// A voter answers requests for messages before the cut that it knows, and no others; and not
// without end.
func TestRestartedVoterDeclines(t *testing.T) {
	v := membership.View{Number: 1, Slots: 3, Version: 5, Members: newGroup(t, 3, false).roles[0].View().Members}
	voter, err := NewRestartedVoter(RestartedVoterConfig{Saved: membership.NewSavedVote(*v.Members.At(2), v,
		membership.Decisions{}), Candidate: *v.Members.At(2), Save: func([]byte, bool) {}, OnView: func(*membership.View) {}})
	if err != nil {
		t.Fatal(err)
	}
	voter.Flush([]membership.Position{{Root: 1, Incarnation: 1, Next: 10, Holder: 1}})
	asker := newGroup(t, 3, false).machine(0)
	if err := asker.Receive(1, 2, []byte{}); err == nil {
		t.Error("an empty frame is taken")
	}
	request := func(root byte, incarnation byte, first byte) []byte {
		return []byte{
			6, 0, 0, 0, 0, root, 0, 0, 0, 0, 0, 0, 0, incarnation, 0, 0, 0, 0, 0, 0, 0, first, 0, 0, 0, 0, 0, 0, 0,
			first + 1,
		}
	}
	count := func(frame []byte, times int) (n int) {
		for range times {
			if err := voter.Receive(1, 0, frame); err != nil {
				t.Fatal(err)
			}
		}
		for to, head, _, ok := voter.Next(1); ok; to, head, _, ok = voter.Next(1) {
			if head[0] < viewFrame && to == 0 {
				n++
			}
		}
		return n
	}
	if count(nil, 1) > 0 {
		t.Error("an empty frame is answered")
	}
	requestKind := byte(0)
	for kind := range byte(20) { // the one that is answered
		f := request(1, 1, 3)
		f[0] = kind
		if count(f, 1) == 1 {
			requestKind = kind
		}
	}
	for _, c := range []struct {
		root, incarnation, first byte
		times, want              int
	}{
		{1, 1, 3, 1, 1},
		{1, 1, 9, 1, 1},
		{1, 1, 10, 1, 0},
		{1, 2, 3, 1, 0},
		{0, 1, 3, 1, 0},
		{1, 1, 3, 2 * maxDeclined, maxDeclined},
	} {
		f := request(c.root, c.incarnation, c.first)
		f[0] = requestKind
		if got := count(f, c.times); got != c.want {
			t.Errorf("%+v: %d answers", c, got)
		}
	}
}

// Candidates are answered once.
func TestJoinIsAnswered(t *testing.T) {
	g := newGroup(t, 3, false)
	var answers []JoinAnswer
	take := func(a JoinAnswer) { answers = append(answers, a) }
	g.machine(2).Join(g.now, membership.Member{Identity: "new", Address: "new", Nonce: 9, Version: 5}, false, take)
	g.machine(2).Join(g.now, membership.Member{Identity: "old", Address: "old", Nonce: 9, Version: 2}, false, take)
	if !g.run(5000*ms, func() bool { return len(answers) == 2 }) {
		t.Fatalf("%d answers", len(answers))
	}
	if answers[0].Err == nil || answers[1].Err != nil || answers[1].View.Number != 2 {
		t.Errorf("%+v", answers)
	}
	if m, ok := answers[1].View.Member(answers[1].Rank); !ok || m.Identity != "new" ||
		len(g.machine(2).joins.waiting) > 0 {
		t.Errorf("%+v, %d wait", answers[1], len(g.machine(2).joins.waiting))
	}
}

// A member without a quorum learns decisions from processes that it does not know. Others need
// none.
func TestBehind(t *testing.T) {
	g := newGroup(t, 3, false)
	m := g.machine(0)
	later := m.View()
	later.Number = 5
	without := later
	without.Members = membership.MembersOf(g.members[1], g.members[2])
	if behind, removed := m.Behind(&later); behind || removed || m.Stuck() ||
		!errors.Is(m.Learn(g.now, membership.Decisions{}), ErrNotStuck) {
		t.Error("a member with its quorum is behind")
	}
	m.Report(g.now, Report{Rank: 1, Incarnation: FirstIncarnation})
	m.Report(g.now, Report{Rank: 2, Incarnation: FirstIncarnation})
	if behind, removed := m.Behind(&later); !behind || removed || !m.Stuck() ||
		m.Learn(g.now, membership.Decisions{}) != nil {
		t.Error("a member without a quorum is not behind")
	}
	if behind, removed := m.Behind(&without); !behind || !removed {
		t.Error("a member is not removed by a view without it")
	}
	same := m.View()
	if behind, _ := m.Behind(&same); behind {
		t.Error("a member is behind its own view")
	}
}

// A static member has streams alone.
func TestStaticMember(t *testing.T) {
	self := membership.Member{Identity: "a", Address: "a", Incarnation: 1}
	m, err := New(Config{
		Self: self, View: membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(self)},
		Static: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Start(1)
	m.SetImpaired(1, true)
	m.Down(1, 1)
	m.Up(1, 1)
	m.Writable(1, 1)
	m.Settle(1)
	for range m.Changes {
		t.Error("a change")
	}
	for _, first := range []byte{unicastFrame, heartbeatFrame, directFrame, viewFrame} {
		if err := m.Receive(1, 1, []byte{first}); err == nil || m.ReceiveBuffer(1, []byte{first, 1, 2}, 100) != nil {
			t.Errorf("a frame that begins with %#x is taken", first)
		}
	}
	m.FlushDirect()
	if _, ok := m.DeliverDirect(); ok || !m.Static() || m.ViewCount() != 0 || !m.DirectFlushed() || m.Unicast() != nil {
		t.Error("it has more than streams")
	}
	if err := m.Receive(1, 1, []byte{viewFrame, 1}); err == nil {
		t.Error("a frame of view changes is taken")
	}
	if err := m.Write([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	m.FlushBatch()
	if _, head, _, ok := m.Next(1); !ok || head[0] >= viewFrame {
		t.Error("it sends nothing")
	}
	m.SendFailed(1, true)
}
