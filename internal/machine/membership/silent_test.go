package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Members that have died without anybody noticing keep the others from agreeing on
// another's removal, but not for ever; wherever in the tree they are.
func TestSilentMembersAreLeftOutInTheEnd(t *testing.T) {
	for unnoticed := 1; unnoticed < 9; unnoticed++ {
		if unnoticed == 3 {
			continue
		}
		n := newNetwork(t, 9, uint64(unnoticed), nil)
		n.kill(unnoticed, 3)
		n.suspectAll(3)
		if v := n.settle(); v.Number != 2 || v.Members.Len() != 7 || n.now > 20*second {
			t.Errorf("%d unnoticed: %v at %v", unnoticed, v, n.now)
		}
	}
}

// settleWithin runs until all agree, and fails the test if that takes too long.
func (n *network) settleWithin(d time.Duration) *View {
	n.t.Helper()
	if !n.run(d, n.agreed) {
		n.t.Fatalf("no agreement after %v: %v\n%s", d, n.failure, n.situation())
	}
	return n.settle()
}

// So many members are silent for longer than AckTimeout that no majority is left. The
// coordinator leaves none of them out, says so, and goes on when they do.
func TestGroupGoesOnAfterMostWereSilent(t *testing.T) { bothWays(t, groupGoesOnAfterMostWereSilent) }

func groupGoesOnAfterMostWereSilent(t *testing.T, way func(*Config)) {
	for _, stopped := range []time.Duration{4 * time.Second, 8 * time.Second, time.Minute} {
		for seed := range uint64(20) {
			n := newNetwork(t, 5, seed, way)
			n.detect = 50 * time.Millisecond
			n.stop(1, 2)
			n.kill(4)
			n.run(stopped, nil)
			if s, _ := n.hosts[0].m.State(); stopped > 8*time.Second && s != NoQuorum {
				t.Errorf("after %v the coordinator is %v", stopped, s)
			}
			n.resume(1, 2)
			wantRanks(t, n.settleWithin(4*time.Second), without(5, 4))
			if s, err := n.hosts[0].m.State(); s != Active {
				t.Errorf("the coordinator is %v: %v", s, err)
			}
		}
	}
}

// The coordinator is cut off, unnoticed by any detector, while another member dies.
// Whether or not the others know of the death, and have gone on without their
// coordinator, all are together again soon after the cut has ended.
func TestGroupGoesOnAfterItsCoordinatorWasCutOff(t *testing.T) {
	for _, cut := range []time.Duration{4 * time.Second, 8500 * time.Millisecond, 30 * time.Second} {
		for _, known := range []bool{false, true} {
			n := newNetwork(t, 5, 1, nil)
			n.rejoin = known // the others go on after a while only if they have a reason to
			healed := n.now + protocol.Time(cut)
			n.blocked = func(from, to *host) bool { return n.now < healed && (from.id == 0 || to.id == 0) }
			n.kill(4)
			if known {
				n.suspectAll(4)
			} else {
				n.suspect(n.hosts[0], n.hosts[4].self)
				n.pump(n.hosts[0])
			}
			n.run(cut, nil)
			if v := n.settleWithin(4 * time.Second); v.Members.Len() != 4 || v.Has(4) {
				t.Errorf("%v, known %v: %v", cut, known, v)
			}
			if cut <= 10*time.Second && n.evictions > 0 {
				t.Errorf("%v, known %v: %d members were evicted for a silence that has ended", cut, known, n.evictions)
			}
		}
	}
}

// A coordinator that takes most of the others for dead, and is wrong, may attempt
// nothing. It does not keep the others from going on.
func TestCoordinatorWithoutMajorityHandsOver(t *testing.T) {
	n := newNetwork(t, 7, 1, nil)
	for _, r := range []int{1, 2, 3, 4} {
		n.suspect(n.hosts[0], n.hosts[r].self)
	}
	n.pump(n.hosts[0])
	n.kill(6)
	n.suspectAll(6)
	gone := func() bool {
		v := &n.hosts[1].m.view
		s, _ := n.hosts[0].m.State()
		return s == Evicted && v.Number == 2 && v.Members.Len() == 5
	}
	if !n.run(12*time.Second, gone) {
		t.Fatal(n.situation())
	}
}

// A coordinator that is stopped in the midst of its attempt has frozen all others.
// One of them takes over, although none has heard of the death that was its reason,
// and finds the dead member silent in turn.
func TestStoppedCoordinatorHandsOver(t *testing.T) {
	n := newNetwork(t, 7, 1, nil)
	n.spy = func(from *host, kind Kind) {
		if from.id == 6 && kind == Promise {
			n.stop(0)
		}
	}
	n.kill(5)
	n.suspect(n.hosts[0], n.hosts[5].self)
	n.pump(n.hosts[0])
	gone := func() bool { return n.hosts[6].m.view.Number == 2 }
	if !n.run(20*time.Second, gone) || n.hosts[6].m.view.Has(0) {
		t.Fatal(n.situation())
	}
}

// A member that cannot hear the coordinator, but is heard, holds up the others no
// longer than one that is dead: only an answer ends silence.
func TestMemberThatOnlySpeaksIsLeftOut(t *testing.T) {
	n := newNetwork(t, 9, 1, nil)
	n.blocked = func(from, to *host) bool { return from.id == 0 && to.id == 5 }
	n.kill(8)
	n.suspectAll(8)
	left := func() bool { return n.hosts[1].m.view.Number == 2 }
	if !n.run(12*time.Second, left) {
		t.Fatal(n.situation())
	}
	wantRanks(t, &n.hosts[1].m.view, without(9, 5, 8))
}

// As long as members answer, none is left out: a group that is slow as a whole gets its
// view. Only the first attempt fails. The second begins when all have answered.
func TestAttemptThatGetsOnIsNotGivenUp(t *testing.T) {
	const size = 40
	n := newNetwork(t, size, 1, nil)
	for slow := 1; slow < size-1; slow++ {
		n.stop(slow)
	}
	n.kill(size - 1)
	n.suspect(n.hosts[0], n.hosts[size-1].self)
	n.pump(n.hosts[0])
	for slow := 1; slow < size-1; slow++ {
		n.run(200*time.Millisecond, nil)
		n.resume(slow)
	}
	wantRanks(t, n.settleWithin(time.Second), without(size, size-1))
	if s := n.hosts[0].m.Stats(); s.Ballots != 2 {
		t.Errorf("%d attempts", s.Ballots)
	}
}

// A member that was stopped itself does not take that for its coordinator's silence.
func TestStoppedMemberDoesNotBlameItsCoordinator(t *testing.T) {
	for step, blamed := range map[protocol.Time]bool{second: true, 12 * second: false} {
		v := firstView(5)
		m, err := New(Config{Self: *v.Members.At(1), View: v, Log: newTestLog(*v.Members.At(1), v)})
		if err != nil {
			t.Fatal(err)
		}
		m.Suspect(1, 4, 1)
		for now := protocol.Time(1); now <= 1+12*second; now += step {
			for _, _, ok := m.Next(now); ok; _, _, ok = m.Next(now) {
			}
		}
		if got := m.lowest(m.excluded()) != 0; got != blamed {
			t.Errorf("looked at each %d ns, the coordinator is blamed: %v", step, got)
		}
	}
}

// The coordinator has run out of file descriptors: it keeps its connections to a
// majority, and cannot reach the other members. Their silence is its own fault, so it
// leaves none of them out. The next rank coordinates in its place, and keeps it as a member.
func TestImpairedCoordinatorLeavesOutNoOtherMember(t *testing.T) {
	for seed := range uint64(5) {
		n := newNetwork(t, 9, seed, nil)
		n.blocked = func(from, to *host) bool { return from.id == 0 && to.id >= 6 || from.id >= 6 && to.id == 0 }
		n.hosts[0].m.SetImpaired(true)
		n.kill(5)
		n.suspectAll(5)
		n.run(time.Minute, func() bool {
			for _, rank := range n.hosts[0].m.Unreachable() {
				if rank != 5 {
					t.Fatalf("seed %d: the coordinator blames rank %d", seed, rank)
				}
			}
			return n.hosts[1].m.View().Number > 1
		})
		if n.now > 2*second {
			t.Errorf("seed %d: after %v", seed, n.now)
		}
		v := n.hosts[1].m.View()
		for _, rank := range []protocol.Rank{0, 1, 2, 3, 4, 6, 7, 8} {
			if !v.Has(rank) {
				t.Errorf("seed %d: rank %d is left out of %v", seed, rank, v.String())
			}
		}
		if v.Number == 1 || v.Has(5) {
			t.Errorf("seed %d: %v at %v", seed, v.String(), n.now)
		}
	}
}

// A member that abstains does so until its status, or an attempt or ping of its own, says
// otherwise.
func TestAbstentionEnds(t *testing.T) {
	whole := set(nil).complement(5)
	for what, f := range map[string]frame{
		"a status": {kind: Status}, "a ping": {kind: Ping},
		"an attempt": {kind: Prepare, ballot: Ballot{1, 0}, members: whole},
		"a cancel":   {kind: Cancel, ballot: Ballot{1, 0}},
	} {
		v := firstView(5)
		self := *v.Members.At(2)
		m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
		if err != nil {
			t.Fatal(err)
		}
		send := func(f frame) {
			t.Helper()
			f.view, f.incarnation = 1, 1
			if err := m.Receive(1, 0, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		send(frame{kind: Status, abstains: true})
		if got := m.lowest(nil); got != 1 {
			t.Errorf("rank 0 abstains, and %d coordinates", got)
		}
		send(f)
		if m.lowest(nil) != 0 {
			t.Errorf("after %s of rank 0, rank %d coordinates", what, m.lowest(nil))
		}
	}
}

// The lowest rank that does not abstain coordinates. If all abstain, none does.
func TestCoordinatorAmongThoseThatAbstain(t *testing.T) {
	for abstain, want := range []protocol.Rank{0, 1, 2, 3, 4, 0} {
		for self := range 5 {
			a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(self) })
			for i := range abstain {
				if i == self {
					a.abstains = true
				} else {
					a.noteAbstention(protocol.Rank(i), true)
				}
			}
			if got := a.lowest(nil); got != want {
				t.Errorf("%d abstain: to rank %d, rank %d coordinates, want %d", abstain, self, got, want)
			}
		}
	}
}

// What a member asks for is reported at once, although it has reported something else a moment ago,
// and waits for the answer.
func TestRequestsAreReportedAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		kind Kind
		ask  func(m *Machine, now protocol.Time)
	}{
		"a suspicion": {Report, func(m *Machine, now protocol.Time) { m.Suspect(now, 3, 1) }},
		"trust":       {Report, func(m *Machine, now protocol.Time) { m.Trust(now, 2, 1) }},
		"a meta":      {MetaChange, func(m *Machine, now protocol.Time) { _ = m.SetMeta(now, "x") }},
		"state":       {MetaChange, func(m *Machine, now protocol.Time) { m.SetSynced(now) }},
		"a version":   {Raise, func(m *Machine, now protocol.Time) { _ = m.RaiseVersion(now, 6) }},
		"a leave":     {Leave, func(m *Machine, now protocol.Time) { m.Leave(now) }},
		"a candidate": {JoinRequest, func(m *Machine, now protocol.Time) {
			m.Join(now, 1, Member{Identity: "new", Address: "new", Nonce: 9, Version: 6}, false)
		}},
	} {
		v := firstView(5)
		var members []Member
		for _, m := range v.Members.All() {
			m := *m
			m.Version = 6
			members = append(members, m)
		}
		v.Version, v.Members = 5, MembersOf(members...)
		self := members[1]
		m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
		if err != nil {
			t.Fatal(err)
		}
		sent := func(now protocol.Time) (kinds []Kind) {
			for _, b, ok := m.Next(now); ok; _, b, ok = m.Next(now) {
				kinds = append(kinds, Kind(b[0]))
			}
			return kinds
		}
		now := protocol.Time(1)
		m.Suspect(now, 2, 1)
		for range 4 {
			sent(now)
			now = m.reporter.due
		}
		sent(now)
		now++
		if m.reporter.due <= now || slices.Contains(sent(now), c.kind) {
			t.Fatalf("%s: it reports without end", what)
		}
		c.ask(m, now)
		if !slices.Contains(sent(now), c.kind) {
			t.Errorf("%s waits, until %d at %d", what, m.reporter.due, now)
		}
	}
}

// A coordinator whose attempt gets no answer pauses before the next one. If there is nothing to
// change any more, the next change is waited for as if there had been none before.
func TestAttemptThatIsNotAnswered(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	a.Suspect(a.now, 4, 1)
	for a.step(a.now + millisecond); a.proposer != nil; a.step(a.now + millisecond) {
		if a.acceptor.tried == 0 {
			t.Fatal("it does not know that it tries")
		}
	}
	if a.pause <= a.now || a.live[awaited].count() != 3 {
		t.Errorf("it waits for %v until %d, at %d", a.live[awaited].each(), a.pause, a.now)
	}
	a.Trust(a.now, 4, 1)
	a.step(a.now)
	if a.acceptor.tried != 0 {
		t.Error("it still tries")
	}
}

// A member that abstains tells so those that take it for the coordinator.
func TestAbstentionIsTold(t *testing.T) {
	for what, f := range map[string]frame{
		"a report": {kind: Report, reports: []report{{1, []suspect{{3, 1, 0}}}}}, "a leave": {kind: Leave},
		"a meta": {kind: MetaChange, wanted: attributes{meta: "x"}}, "a version": {kind: Raise, version: 6},
		"a candidate": {
			kind:      JoinRequest,
			candidate: candidate{Member: Member{Rank: protocol.NoRank, Identity: "new", Nonce: 9}},
		},
		"a stuck one":         {kind: Status, stuck: true},
		"! an answer":         {kind: Pong},
		"! a member's status": {kind: Status},
	} {
		for _, abstains := range []bool{true, false} {
			v := firstView(5)
			self := *v.Members.At(0)
			m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
			if err != nil {
				t.Fatal(err)
			}
			m.abstains = abstains
			f.view, f.incarnation = 1, 1
			if err := m.Receive(1, 1, f.append(nil)); err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(m.outbox, func(s send) bool { return s.to == 1 && s.frame.abstains })
			if told != (abstains && what[0] != '!') {
				t.Errorf("%s, abstains %t: told %t", what, abstains, told)
			}
		}
	}
}

// framesOf returns what a member sends until a time, by receiver.
func framesOf(m *Machine, until protocol.Time, kind Kind) map[protocol.Rank][]*frame {
	sent := make(map[protocol.Rank][]*frame)
	for now := m.now; ; now = min(m.nextCall(), until) {
		for to, b, ok := m.Next(now); ok; to, b, ok = m.Next(now) {
			if f, err := parse(0, b); err == nil && f.kind == kind {
				sent[to] = append(sent[to], f)
			}
		}
		if now == until {
			return sent
		}
	}
}

// An attempt for which there is no reason any more ends, and the others are told.
func TestAttemptWithoutAReasonEnds(t *testing.T) {
	a := newAsker(t, nil)
	a.Suspect(a.now, 4, 1)
	a.step(a.now + millisecond)
	if a.proposer == nil {
		t.Fatal("it does not try")
	}
	a.Trust(a.now, 4, 1)
	if sent := framesOf(a.Machine, a.now, Cancel); a.proposer != nil || a.stats.Canceled != 1 || len(sent) != 3 ||
		a.stats.Sent[Cancel] != 3 {
		t.Errorf("it goes on: %t, canceled %d, told %d", a.proposer != nil, a.stats.Canceled, len(sent))
	}
}

// A member whose messages wait for a view for long tells the coordinator, and a coordinator tries
// again by itself. If the view is decided, neither does: it has what it waits for.
func TestStuckMembersTellTheCoordinator(t *testing.T) {
	for _, decided := range []bool{false, true} {
		for self := range 2 {
			a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(self) })
			a.acceptor.frozen, a.acceptor.since = true, a.now
			if decided {
				a.acceptor.decided = &value{number: 2}
			}
			told := false
			for _, f := range framesOf(a.Machine, a.now+2*a.config.AttemptTimeout+2*a.config.StatusInterval, Status)[0] {
				told = told || f.stuck
			}
			if tried := a.acceptor.stuck || a.stats.Ballots > 0; told != (!decided && self == 1) ||
				tried != (!decided && self == 0) {
				t.Errorf("decided %t, rank %d: told %t, tried %t", decided, self, told, tried)
			}
		}
	}
}

// When the next view is decided, members report nothing: it may be about that.
func TestNothingIsReportedWhenAViewIsDecided(t *testing.T) {
	for _, decided := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
		if decided {
			a.acceptor.decided = &value{number: 2}
		}
		a.Suspect(a.now, 4, 1)
		if sent := len(framesOf(a.Machine, a.now, Report)) > 0; sent == decided {
			t.Errorf("decided %t: reported %t", decided, sent)
		}
	}
}

// Of two proposers that have preempted each other, the higher rank waits for longer. It waits no
// longer than a few attempts take.
func TestHigherRanksRetreatForLonger(t *testing.T) {
	before := protocol.Time(0)
	for self := range 5 {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(self) })
		if got := a.retreat(); got <= before || got > maxRetreat*a.config.AttemptTimeout+
			maxRankBackoff*a.config.RetryInterval {
			t.Errorf("rank %d waits for %d, the one before for %d", self, got, before)
		}
		before = a.retreat()
		a.attemptTimeout = 1000 * a.config.AttemptTimeout
		if a.retreat() > before+maxRetreat*a.config.AttemptTimeout {
			t.Errorf("rank %d waits for %d after long attempts", self, a.retreat())
		}
	}
}

// The time that answers take is measured from the first question to all that are awaited.
func TestAwaitedMembersAreAskedFromTheFirstQuestionOn(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	a.Suspect(a.now, 4, 1)
	for a.step(a.now + millisecond); a.proposer != nil; a.step(a.now + millisecond) {
	}
	w := &a.awaiting
	for a.step(a.now + millisecond); w.tries < 3 && a.live[awaited] != nil; a.step(a.now + millisecond) {
		if w.tries > 0 && (w.pinged != 3 || w.first == 0 || w.tries > 1 && w.first == a.now) {
			t.Fatalf("%+v", w)
		}
	}
	if w.tries < 3 {
		t.Errorf("%d questions", w.tries)
	}
}

// A coordinator whose proposal too few accept asks those that are missing again and again. It also
// shows those that have accepted that it is not silent, but no more often than that takes.
func TestCoordinatorShowsThatItIsNotSilent(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	answer := func(from int, f frame) {
		f.view, f.incarnation, f.ballot, f.members = 1, 1, a.proposer.ballot, newSet(5)
		f.members.add(from)
		if err := a.Receive(a.now, protocol.Rank(from), f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	a.Suspect(a.now, 4, 1)
	a.step(a.now + millisecond)
	for from := range 3 {
		answer(from+1, frame{kind: Promise})
	}
	a.step(a.now + millisecond)
	answer(1, frame{kind: Accept})
	const shows = 8
	sent := framesOf(a.Machine, a.now+shows*a.config.AckTimeout/2, Propose)
	if n := len(sent[1]); n < shows-2 || n > shows {
		t.Errorf("a member that has accepted is asked %d times, want about %d", n, shows)
	}
	if n := len(sent[2]); n < 3*shows {
		t.Errorf("a member that is missing is asked %d times", n)
	}
}

// A member begins to wait for a coordinator when it asks one, another one, or runs again itself. It
// waits for none if it coordinates, or has nothing to ask.
func TestWaitForACoordinatorBegins(t *testing.T) {
	const at = 1000 * second
	for what, c := range map[string]struct {
		change func(a *asker)
		since  protocol.Time
	}{
		"it waits already":      {func(*asker) {}, at - second},
		"it has not asked":      {func(a *asker) { a.silence.asked = 0 }, at},
		"another coordinator":   {func(a *asker) { a.silence.coordinator = 3 }, at},
		"it was stopped":        {func(a *asker) { a.silence.looked = 1 }, at},
		"it coordinates itself": {func(a *asker) { a.Suspect(at, 0, 1) }, 0},
		"it has nothing to ask": {func(a *asker) {
			a.Trust(at, 4, 1)
			a.suspicions.reported = []reported{{report{2, []suspect{{4, 1, 0}}}, 2, 2 * at}}
		}, 0},
		"an attempt": {func(a *asker) { a.now = at; a.receive(t, 0, frame{kind: Ping}) }, at},
	} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1) })
		a.Suspect(a.now, 4, 1)
		a.step(a.now)
		a.silence, a.reporter.heard = silence{asked: at - second, looked: at - 1}, at
		c.change(a)
		a.now = at
		a.run()
		if a.silence.asked != c.since {
			t.Errorf("%s: it waits since %d", what, a.silence.asked)
		}
	}
}
