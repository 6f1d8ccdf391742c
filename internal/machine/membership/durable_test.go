package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// A vote is told when it is saved, and not before, and what is saved has it.
func TestVoteIsToldWhenSaved(t *testing.T) {
	v := firstView(3)
	self := *v.Members.At(1)
	m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v), Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	promises := func() (n int) {
		for _, b, ok := m.Next(1); ok; _, b, ok = m.Next(1) {
			if Kind(b[0]) == Promise {
				n++
			}
		}
		return n
	}
	m.Unsaved()
	m.Saved(1)
	prepare := frame{kind: Prepare, view: 1, incarnation: 1, ballot: Ballot{1, 0}, members: set(nil).complement(3)}
	if err := m.Receive(1, 0, prepare.append(nil)); err != nil {
		t.Fatal(err)
	}
	if promises() > 0 {
		t.Error("a promise is told that is not to be saved yet")
	}
	state, sync, ok := m.Unsaved()
	if saved, err := DecodeSavedVote(state); err != nil || saved.promised != prepare.ballot || !sync || !ok {
		t.Errorf("%+v is saved, sync %t: %v", saved, sync, err)
	}
	if promises() > 0 {
		t.Error("a promise is told that is not saved")
	}
	m.Saved(1)
	if promises() != 1 {
		t.Error("no promise although it is saved")
	}
}

// One state is saved at a time: what a member votes while it is saving is saved after that, and
// told only then.
func TestOneStateIsSavedAtATime(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Durable, c.Self = true, *c.View.Members.At(2) })
	a.Unsaved()
	a.Saved(a.now)
	prepare := frame{kind: Prepare, view: 1, incarnation: 1, members: set(nil).complement(5)}
	for r := range protocol.Rank(2) {
		prepare.ballot = Ballot{1, r}
		if err := a.Receive(a.now, r, prepare.append(nil)); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := a.Unsaved(); ok != (r == 0) {
			t.Errorf("ballot %v: saved while another state is: %t", prepare.ballot, ok)
		}
	}
	a.Saved(a.now)
	if told := framesOf(a.Machine, a.now, Promise); len(told[1]) > 0 {
		t.Error("a promise is told that is not saved")
	}
	if saved, err := DecodeSavedVote(first(a.Unsaved())); err != nil || saved.promised != prepare.ballot {
		t.Fatalf("%+v is saved: %v", saved, err)
	}
	a.Saved(a.now)
	if told := framesOf(a.Machine, a.now, Promise); len(told[1]) != 1 {
		t.Errorf("%d promises are told", len(told[1]))
	}
}

func first(state []byte, _, _ bool) []byte { return state }

// What a member saves before its ballot begins has the ballot: started again, it cannot begin
// another one of that name.
func TestReservedBallotIsSaved(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Durable, c.DoubtTimeout = true, 0 })
	a.Unsaved()
	a.Saved(a.now)
	a.Suspect(a.now, 4, 1)
	a.step(a.now + millisecond)
	state, _, _ := a.Unsaved()
	saved, err := DecodeSavedVote(state)
	if err != nil || a.proposer != nil {
		t.Fatalf("%v, it tries before: %t", err, a.proposer != nil)
	}
	a.Saved(a.now)
	a.step(a.now + millisecond)
	if a.proposer == nil || a.proposer.ballot != saved.promised {
		t.Fatalf("%+v begins, and %v is saved", a.proposer, saved.promised)
	}
	c := Config{Log: new(voterLog), Durable: true}
	again, err := Restore(c, saved)
	if err != nil || !saved.promised.less(again.acceptor.promised) {
		t.Errorf("%v is promised: %v", again.acceptor.promised, err)
	}
	if next := (Ballot{saved.promised.Round + 1, 0}); !again.acceptor.promised.less(next) {
		t.Errorf("%v is promised, so that ballot %v would be refused", again.acceptor.promised, next)
	}
}

// A member that learns that it is removed ends at once, although its vote is not saved. One that
// has decided so itself has to save its vote first: the others need the decision.
func TestRemovedMemberSavesItsOwnDecision(t *testing.T) {
	for _, root := range []protocol.Rank{0, 1} {
		for _, saved := range []bool{true, false} {
			a := newAsker(t, func(c *Config) { c.Durable = true })
			a.Unsaved()
			a.Saved(a.now)
			if !saved {
				a.voted()
			}
			v := &value{number: 2, version: a.view.Version, slots: a.view.Slots, removed: newSet(5), reasons: make([]reason, 1)}
			v.removed.add(0)
			a.decide(a.now, v, root)
			if ended := a.done != nil; ended != (saved || root != 0) {
				t.Errorf("decided by rank %d, saved %t: it has ended: %t", root, saved, ended)
			}
			a.Unsaved()
			a.Saved(a.now)
			if a.done == nil {
				t.Errorf("decided by rank %d: it does not end", root)
			}
		}
	}
}

// A restarted voter that owns a ballot accepts as soon as the others make a quorum with it, one that takes
// part when all below it have accepted.
func TestRestartedVoterAcceptsAfterOthers(t *testing.T) {
	v := firstView(5)
	for _, c := range []struct {
		owner protocol.Rank
		acked []int
		may   bool
	}{
		{0, []int{1, 2}, true},
		{0, []int{1}, false},
		{0, []int{1, 2, 3, 4}, true},
		{1, []int{2, 3}, false},
		{1, []int{2, 3, 4}, true},
	} {
		m, err := Restore(Config{Log: new(voterLog), Durable: true}, NewSavedVote(*v.Members.At(0), v, Decisions{}))
		if err != nil {
			t.Fatal(err)
		}
		everyone := set(nil).complement(5)
		p := &ballotState{ballot: Ballot{1, c.owner}, members: everyone, subtree: everyone, acked: newSet(5)}
		for _, i := range c.acked {
			p.acked.add(i)
		}
		p.subtree = everyone
		if c.owner != 0 {
			p.subtree = slices.Clone(everyone)
			p.subtree.remove(1)
		}
		if m.othersHaveAccepted(p) != c.may {
			t.Errorf("of rank %d, accepted by %v: it may accept: %t", c.owner, c.acked, !c.may)
		}
	}
}

// voterLog is the log of a restarted voter: it has no messages.
type voterLog struct {
	views     []View
	candidate Member
}

func (*voterLog) Freeze() []Position { return nil }
func (*voterLog) Thaw()              {}
func (*voterLog) Flush([]Position)   {}
func (*voterLog) Flushed() bool      { return true }
func (l *voterLog) Install(v *View)  { l.views = append(l.views, *v) }

// restore starts a process again from its disk, if it has saved anything.
func (n *network) restore(h *host) {
	if h.disk == nil {
		n.restart(h)
		return
	}
	saved, err := DecodeSavedVote(h.disk)
	if err != nil {
		n.t.Fatal(err)
	}
	l := &voterLog{candidate: saved.Self}
	if h.next == 0 {
		h.next = n.nonce()
	}
	l.candidate.Nonce = h.next
	c := Config{Log: l, Durable: true}
	n.config(&c)
	m, err := Restore(c, saved)
	if err != nil {
		n.t.Fatal(err)
	}
	n.logf("%s is restored in %v, promised %v, accepted %v", who(saved.Self), &saved.View, saved.promised, saved.accepted)
	h.self, h.m, h.voter, h.dead, h.asking = saved.Self, m, l, false, false
	h.log, h.sees, h.woken = newTestLog(h.self, saved.View), map[protocol.Rank]uint64{}, 0
	h.views = append(h.views[:0:0], saved.View)
	h.token++
	m.Join(n.now, uint64(h.id)<<32|h.token, l.candidate, true)
	n.pump(h)
	n.watch(h, m)
}

// collectVoter takes the results of a restarted voter: its process is a member, or has to join as
// any other.
func (n *network) collectVoter(h *host) {
	l := h.voter
	for _, v := range l.views {
		if other, ok := n.checker.views[v.Number]; ok && !other.Equal(&v) {
			n.fail(fmt.Errorf("agreement: the restarted voter of %s installs %v, others %v", who(h.self), &v, &other))
		}
		h.views = append(h.views, v)
	}
	l.views = nil
	for {
		a, ok := h.m.Answers()
		if !ok {
			break
		}
		switch {
		case int(a.Token>>32) != h.id:
			n.after(n.delay(), func() { n.answer(a) })
		case a.Err == nil:
			n.logf("%s is back in %v", who(h.self), &a.View)
			h.decisions, h.m, h.self.Nonce = a.Decisions, nil, l.candidate.Nonce
			n.start(h, a.View)
			return
		case h.m.done == nil:
			h.m.Join(n.now, a.Token, l.candidate, true)
		}
	}
	if h.m.done != nil {
		n.logf("the restarted voter of %s is over: %v", who(h.self), h.m.done)
		h.m, h.voter = nil, nil
		h.self.Incarnation, h.self.Nonce = 0, l.candidate.Nonce // it may have been admitted
		n.requestJoin(h)
	}
}

// Random schedules in which any number of processes die, all of them too, and are
// restored from their disks. There is never more than one view of a number; and once
// all are back, they agree.
func TestRandomSchedulesWithDisks(t *testing.T) {
	schedules := uint64(1000)
	if testutil.RaceEnabled || testing.Short() {
		schedules = 200
	}
	var total totals
	restored := 0
	for seed := range schedules {
		run := func(verbose bool) (*schedule, int, error) {
			s := newSchedule(t, seed)
			s.n.disks, s.n.verbose = true, verbose
			// The majority that goes on is one of restarted voters, not of the processes in both views.
			s.n.checker.isQuorum = func(*View, set) bool { return true }
			count, err := s.runWithDisks()
			return s, count, err
		}
		s, count, err := run(false)
		if err != nil {
			s, _, _ = run(true)
			log := s.n.log
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, strings.Join(log[max(0, len(log)-400):], "\n"), s.n.situation())
		}
		total.add(s.totals)
		restored += count
	}
	t.Logf("%d schedules, %d restored: %+v", schedules, restored, total)
}

// runWithDisks is run with restarts from disks, and without messages: those that only
// lost processes had are lost.
func (s *schedule) runWithDisks() (restored int, err error) {
	n := s.n
	back := func(h *host) {
		if h.dead && !h.left && !h.refused {
			restored++
			n.restore(h)
		}
	}
	for range 5 + n.rng.IntN(15) {
		n.run(time.Duration(n.rng.Int64N(int64(120*time.Millisecond))), nil)
		switch h := s.any(); n.rng.IntN(8) {
		case 0, 1:
			for range 1 + n.rng.IntN(len(n.hosts)) {
				s.crash(s.any())
			}
		case 2, 3, 4:
			back(h)
		case 5:
			for _, h := range n.hosts {
				back(h)
			}
		case 6:
			for _, h := range n.hosts {
				s.side[h.id] = n.rng.IntN(2)
			}
		default:
			s.side = map[int]int{}
			s.mistrust(s.any(), h)
		}
	}
	s.healed, s.side = true, map[int]int{}
	n.drop, n.jitter = 0, min(n.jitter, 5*time.Millisecond)
	n.logf("all heals")
	for _, h := range n.hosts {
		back(h)
	}
	agreed := n.run(time.Minute, n.agreed)
	s.totals.Views += len(n.checker.views)
	if n.failure == nil && !agreed {
		return restored, fmt.Errorf("no agreement a minute after the last fault")
	}
	return restored, n.failure
}

// A proposer that lacks messages, and has not accepted its own proposal yet, saves that it has
// proposed before it tells others: its next ballot must not let them thaw.
func TestProposalIsSavedBeforeItIsTold(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Durable, c.DoubtTimeout, c.Log = true, 0, newTestLog(c.Self, c.View) })
	save := func() (saved *SavedVote) {
		if state, _, ok := a.Unsaved(); ok {
			var err error
			saved, err = DecodeSavedVote(state)
			if err != nil {
				t.Fatal(err)
			}
			a.Saved(a.now)
		}
		return saved
	}
	save()
	a.Suspect(a.now, 4, 1)
	for a.step(a.now); a.proposer == nil; a.step(a.now) {
		save()
	}
	b := a.proposer.ballot
	for from := range 3 {
		f := frame{kind: Promise, ballot: b, members: newSet(5)}
		f.positions = []Position{{Root: 1, Incarnation: 1, Next: 1, Holder: 1}}
		f.members.add(from + 1)
		a.receive(t, protocol.Rank(from+1), f)
	}
	if sent := framesOf(a.Machine, a.now, Propose); len(sent) > 0 || a.acceptor.proposed != b || a.acceptor.accepted == b {
		t.Errorf("proposed %v, accepted %v, told %d members", a.acceptor.proposed, a.acceptor.accepted, len(sent))
	}
	if saved := save(); saved == nil || saved.proposed != b {
		t.Fatalf("%+v is saved", saved)
	}
	if sent := framesOf(a.Machine, a.now, Propose); len(sent) != 3 {
		t.Errorf("%d members get the proposal", len(sent))
	}
}

// A member whose disk is slow asks to be called only for what it can do meanwhile.
func TestMemberThatSavesWaits(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Durable, c.DoubtTimeout = true, 0 })
	a.Unsaved()
	a.Saved(a.now)
	a.Suspect(a.now, 4, 1)
	a.step(a.now + 20*second) // it wants to begin
	a.Unsaved()
	a.Saved(a.now)
	a.step(a.now)
	a.answer(t, Promise, a.proposer.ballot, 1, 2, 3)
	a.run()
	a.step(a.now + 20*second) // it has proposed
	if a.acceptor.accepted != a.proposer.ballot || a.stats.Sent[Propose] > 0 {
		t.Error("it tells a vote that is not saved")
	}
}

// A member that knows the next view, and waits for messages, asks to be called only for what it
// can do meanwhile.
func TestMemberThatFlushesWaits(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1); c.Log = newTestLog(c.Self, c.View) })
	a.Suspect(a.now, 4, 1)
	a.step(a.now)
	d := &value{
		number: 2, version: a.view.Version, slots: 5, removed: newSet(5),
		cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
	}
	if err := a.Learn(a.now, Decisions{[]*value{d}}); err != nil {
		t.Fatal(err)
	}
	a.step(a.now + 60*second)
	if a.view.Number != 1 {
		t.Error("it does not wait for the messages")
	}
}

// The state of a member follows its view, also if it has not voted. That of a member that has
// ended does not change any more, but for a vote.
func TestStateFollowsTheView(t *testing.T) {
	for _, ended := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.Durable, c.Self = true, *c.View.Members.At(2) })
		a.Unsaved()
		a.Saved(a.now)
		a.receive(t, 0, frame{kind: Commit, value: &value{number: 2, version: a.view.Version, slots: 5, removed: newSet(5)}})
		if ended {
			a.Removed(a.now, 9, nil)
		}
		state, sync, ok := a.Unsaved()
		if ok == ended || sync {
			t.Errorf("ended %t: saved %t, sync %t", ended, ok, sync)
		}
		if saved, err := DecodeSavedVote(state); ok && (err != nil || saved.View.Number != 2) {
			t.Errorf("%+v is saved: %v", saved, err)
		}
		if _, _, again := a.Unsaved(); again {
			t.Error("it is saved twice")
		}
	}
}

// The promise of a restarted voter is above all ballots of the round, and below the next round unless a
// member has the highest rank.
func TestBallotAboveAll(t *testing.T) {
	for highest, want := range map[protocol.Rank]Ballot{3: {7, MaxSlots - 1}, MaxSlots - 1: {8, MaxSlots - 1}} {
		v := View{Number: 1, Slots: highest + 1, Members: MembersOf(Member{Rank: 0}, Member{Rank: highest})}
		if got := aboveAll(7, &v); got != want || !(Ballot{7, highest}).less(got) {
			t.Errorf("with rank %d: %v, want %v", highest, got, want)
		}
	}
}

// A view is on the disk at once if those that stay in it could not decide it again: a voter that was
// restored from the view before would wait for others that have left.
func TestViewOfAMinorityIsSavedAtOnce(t *testing.T) {
	for _, c := range []struct {
		removed []int
		sync    bool
	}{{[]int{3, 4}, false}, {[]int{0, 1, 4}, true}, {[]int{0, 1, 3, 4}, true}} {
		a := newAsker(t, func(c *Config) { c.Durable, c.Self = true, *c.View.Members.At(2) })
		a.Unsaved()
		a.Saved(a.now)
		removed := newSet(5)
		for _, i := range c.removed {
			removed.add(i)
		}
		a.receive(t, 0, frame{kind: Commit, value: &value{number: 2, version: a.view.Version, slots: 5, removed: removed}})
		if _, sync, ok := a.Unsaved(); !ok || sync != c.sync || a.view.Number != 2 {
			t.Errorf("view %d without %v: saved %t, sync %t", a.view.Number, c.removed, ok, sync)
		}
	}
}

// A restarted voter that does not make sense is refused. One that has not voted has promised nothing.
func TestStrangeSavedVotes(t *testing.T) {
	v := firstView(3)
	v.Number = 9
	decision := func(number uint64) *value { return &value{number: number, slots: 3, removed: newSet(3)} }
	for what, change := range map[string]func(*SavedVote){
		"": func(*SavedVote) {},
		"it has voted": func(s *SavedVote) {
			s.promised, s.accepted, s.value = Ballot{1, 0}, Ballot{1, 0},
				decision(10)
		},
		"it knows decisions":               func(s *SavedVote) { s.history = []*value{decision(8), decision(9)} },
		"! a value of another view":        func(s *SavedVote) { s.value = decision(11) },
		"! a view without members":         func(s *SavedVote) { s.View.Members = Members{} },
		"! the same, and a value":          func(s *SavedVote) { s.View.Former, s.value = s.View.Members, decision(10) },
		"! a decision that is not before":  func(s *SavedVote) { s.history = []*value{decision(10)} },
		"! a decision that is missing":     func(s *SavedVote) { s.history = []*value{decision(7), decision(9)} },
		"! decisions in another order":     func(s *SavedVote) { s.history = []*value{decision(9), decision(8)} },
		"! decisions up to another number": func(s *SavedVote) { s.history = []*value{decision(7), decision(8)} },
	} {
		s := NewSavedVote(*v.Members.At(1), v, Decisions{})
		change(s)
		got, err := DecodeSavedVote(s.Encode())
		if errors.Is(err, ErrView) != strings.HasPrefix(what, "!") {
			t.Errorf("%q: %v", what, err)
		}
		if err != nil {
			continue
		}
		if _, err := Restore(Config{}, got); err == nil {
			t.Errorf("%q: restored without a log", what)
		}
		m, err := Restore(Config{Log: new(voterLog)}, got)
		if err != nil || (m.acceptor.promised != Ballot{}) != (what == "it has voted") || m.acceptor.accepted != s.accepted ||
			len(m.history) != len(s.history) {
			t.Errorf("%q: promised %v, accepted %v, %d decisions: %v", what, m.acceptor.promised, m.acceptor.accepted,
				len(m.history), err)
		}
	}
}

// A restarted voter that coordinates accepts its own proposal when others have, by which the view is decided.
func TestRestartedVoterDecidesWithOthers(t *testing.T) {
	v := firstView(5)
	m, err := Restore(Config{Log: new(voterLog), Durable: true}, NewSavedVote(*v.Members.At(0), v, Decisions{}))
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Machine: m, asked: map[protocol.Rank]int{}, told: map[protocol.Rank]int{}}
	save := func() { a.Unsaved(); a.Saved(a.now) }
	save()
	a.Suspect(1, 4, 1)
	for a.step(1); a.proposer == nil; a.step(1) {
		save()
	}
	b := a.proposer.ballot
	a.answer(t, Promise, b, 1, 2, 3)
	for from := 1; from <= 2; from++ {
		save()
		if a.acceptor.accepted == b {
			t.Fatalf("it accepts after %d others", from-1)
		}
		a.answer(t, Accept, b, from)
	}
	if a.acceptor.accepted != b || a.acceptor.decided == nil {
		t.Errorf("accepted %v, decided %t", a.acceptor.accepted, a.acceptor.decided != nil)
	}
}
