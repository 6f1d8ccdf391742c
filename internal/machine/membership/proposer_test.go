package membership

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Many deaths at once are reported one by one. Each attempt is given as long as
// all before it took together, so there are few of them.
func TestManyDeathsMakeFewAttempts(t *testing.T) {
	n := newNetwork(t, 40, 1, nil)
	for dead := 21; dead < 40; dead++ {
		n.kill(dead)
	}
	for dead := 21; dead < 40; dead++ {
		n.suspect(n.hosts[0], n.hosts[dead].self)
		n.pump(n.hosts[0])
		n.run(100*time.Microsecond, nil)
	}
	first := firstView(21)
	wantRanks(t, n.settle(), ranks(&first))
	if b := n.hosts[0].m.Stats().Ballots; b > 7 { // at 0, 1, 2, 4, 8, 16, 32 times the time between two reports
		t.Errorf("19 deaths took %d attempts", b)
	}
}

// Who is suspected together is removed together: an attempt begins when the
// driver asks for frames, not at the first suspicion.
func TestFeedMakesOneAttempt(t *testing.T) {
	n := newNetwork(t, 40, 1, nil)
	for dead := 21; dead < 40; dead++ {
		n.kill(dead)
		n.suspect(n.hosts[0], n.hosts[dead].self)
	}
	n.pump(n.hosts[0])
	n.settle()
	if s := n.hosts[0].m.Stats(); s.Ballots != 1 || s.Changes != 1 {
		t.Errorf("a feed of 19 deaths took %+v", s)
	}
}

// answer has a member answer a ballot for itself.
func (a *asker) answer(t *testing.T, kind Kind, b Ballot, from ...int) {
	t.Helper()
	for _, i := range from {
		f := frame{kind: kind, view: 1, incarnation: 1, ballot: b, members: newSet(5)}
		f.members.add(i)
		if err := a.Receive(a.now, protocol.Rank(i), f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// receive has a member get a frame of another one of its view.
func (a *asker) receive(t *testing.T, from protocol.Rank, f frame) {
	t.Helper()
	f.view, f.incarnation = 1, 1
	if err := a.Receive(a.now, from, f.append(nil)); err != nil {
		t.Fatal(err)
	}
}

// newAttempt returns a coordinator of five that attempts a view without rank 4.
func newAttempt(t *testing.T) *asker {
	t.Helper()
	a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	a.Suspect(a.now, 4, 1)
	a.step(a.now + millisecond)
	if a.proposer == nil {
		t.Fatal("it does not try")
	}
	return a
}

// An attempt is given up when no further acknowledgment comes for too long. One that was counted
// before is none.
func TestAcknowledgmentsKeepAnAttemptAlive(t *testing.T) {
	a := newAttempt(t)
	b, first := a.proposer.ballot, a.proposer.deadline
	a.step(first - 1)
	a.answer(t, Promise, b, 2)
	second := a.proposer.deadline
	if second != first-1+a.attemptWait() {
		t.Errorf("it ends at %d after an acknowledgment at %d", second, a.now)
	}
	a.step(second - 1)
	a.answer(t, Promise, b, 2)
	if a.proposer.deadline != second {
		t.Error("the same acknowledgment keeps it alive")
	}
	a.step(second)
	if a.proposer != nil {
		t.Error("it goes on")
	}
}

// How long answers take is known when more than half of those asked have answered.
func TestMostAnswersTeachThePace(t *testing.T) {
	a := newAttempt(t)
	a.step(a.now + 10*millisecond)
	a.answer(t, Promise, a.proposer.ballot, 1)
	if a.pace.answer != 0 {
		t.Errorf("after half of the answers, they take %d", a.pace.answer)
	}
	a.answer(t, Promise, a.proposer.ballot, 2)
	if a.pace.answer != 10*millisecond {
		t.Errorf("answers take %d", a.pace.answer)
	}
}

// A proposer whose ballot is refused for a higher one backs off, and then tries one above that.
// A refusal of another ballot, or for a lower one, does not stop it.
func TestRefusedProposerYields(t *testing.T) {
	for _, c := range []struct {
		ballot, other Ballot
		yields        bool
	}{
		{Ballot{1, 0}, Ballot{7, 3}, true},
		{Ballot{1, 0}, Ballot{1, 3}, true},
		{Ballot{1, 0}, Ballot{1, 0}, false},
		{Ballot{2, 0}, Ballot{7, 3}, false},
	} {
		a := newAttempt(t)
		a.receive(t, 3, frame{kind: Refuse, ballot: c.ballot, other: c.other})
		if (a.proposer == nil) != c.yields || (a.pause > a.now) != c.yields {
			t.Errorf("%v is refused for %v: it goes on: %t", c.ballot, c.other, a.proposer != nil)
		}
		if !c.yields {
			continue
		}
		for a.stats.Ballots == 1 {
			a.step(a.Deadline())
		}
		if !c.other.less(a.acceptor.promised) {
			t.Errorf("after a refusal for %v, it tries %v", c.other, a.acceptor.promised)
		}
	}
}

// A proposer that learns that a higher ballot is over yields to it, and tells the others that its
// own one is over: it could not accept its own proposal any more.
func TestProposerYieldsToACanceledBallot(t *testing.T) {
	for _, c := range []struct {
		canceled Ballot
		yields   bool
	}{{Ballot{1, 1}, true}, {Ballot{5, 3}, true}, {Ballot{0, 3}, false}} {
		a := newAttempt(t)
		a.receive(t, c.canceled.Rank, frame{kind: Cancel, ballot: c.canceled})
		sent := framesOf(a.Machine, a.now, Cancel)
		if (a.proposer == nil) != c.yields || (len(sent) == 3) != c.yields || (a.pause > a.now) != c.yields {
			t.Errorf("%v is over: it goes on: %t, %d members are told", c.canceled, a.proposer != nil, len(sent))
		}
	}
}

// A proposer begins again for a member that it would leave out and that is heard again, but not
// over and over, and not if a value may have been decided already.
func TestAttemptsBeginAgainAFewTimes(t *testing.T) {
	a := newAttempt(t)
	again := 0
	for a.acceptor.current.proposal == nil {
		a.Suspect(a.now, 3, 1)
		for a.step(a.now); a.acceptor.current == nil || a.acceptor.current.members.has(3); a.step(a.Deadline()) {
			if a.acceptor.current != nil {
				a.proposer.grace = a.now
			}
		}
		a.Trust(a.now, 3, 1)
		a.answer(t, Promise, a.proposer.ballot, 1, 2)
		if a.acceptor.current == nil {
			again++
			a.step(a.now)
		}
		if again > 2*maxSpared {
			break
		}
	}
	if again != maxSpared {
		t.Errorf("it begins again %d times, want %d", again, maxSpared)
	}
	b := newAttempt(t)
	b.Suspect(b.now, 3, 1)
	for b.step(b.now); b.acceptor.current == nil || b.acceptor.current.members.has(3); b.step(b.Deadline()) {
	}
	b.Trust(b.now, 3, 1)
	accepted := &value{number: 2, version: b.view.Version, slots: 5, removed: newSet(5)}
	promise := frame{kind: Promise, ballot: b.proposer.ballot, other: Ballot{1, 1}, members: newSet(5), value: accepted}
	promise.members.add(1)
	promise.members.add(2)
	b.receive(t, 1, promise)
	if p := b.acceptor.current; p == nil || p.proposal == nil || !p.proposal.equal(accepted) {
		t.Error("a value that may have been decided is not proposed")
	}
}

// A member that has promised a higher ballot tells the owner of a lower one so.
func TestLowerBallotsAreRefused(t *testing.T) {
	for kind := range map[Kind]bool{Prepare: true, Propose: true} {
		for _, b := range []Ballot{{1, 4}, {2, 0}, {2, 1}, {3, 0}} {
			a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
			everyone := set(nil).complement(5)
			a.receive(t, 1, frame{kind: Prepare, ballot: Ballot{2, 1}, members: everyone})
			a.run()
			a.receive(t, b.Rank, frame{
				kind: kind, ballot: b, members: everyone,
				value: &value{number: 2, version: a.view.Version, slots: 5, removed: newSet(5)},
			})
			sent := framesOf(a.Machine, a.now, Refuse)[b.Rank]
			if refused := len(sent) == 1 && sent[0].ballot == b &&
				sent[0].other == (Ballot{2, 1}); refused != b.less(Ballot{2, 1}) {
				t.Errorf("%v of %v is refused: %t", kind, b, refused)
			}
		}
	}
}

// Of the values that participants have accepted, the one of the highest ballot is proposed, in
// whatever order they say so: an earlier ballot may have decided it.
func TestValueOfTheHighestBallotIsProposed(t *testing.T) {
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 1, 3}, {2, 3, 1}} {
		a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
		a.seen = 8
		a.Suspect(a.now, 4, 1)
		a.step(a.now)
		for _, from := range order {
			f := frame{kind: Promise, ballot: a.proposer.ballot, members: newSet(5)}
			f.members.add(from)
			if from < 3 { // of rank 2 in a higher one
				f.other = Ballot{uint32(from), 4}
				f.value = &value{number: 2, version: a.view.Version, slots: protocol.Rank(4 + from), removed: newSet(5)}
			}
			a.receive(t, protocol.Rank(from), f)
		}
		if p := a.acceptor.current; p == nil || p.proposal == nil || p.proposal.slots != 6 {
			t.Errorf("%v: %+v", order, p)
		}
	}
}

// A member thaws when all ballots that it is frozen for are over. The owner of a ballot says with
// its next one which of them are: a Cancel may be lost.
func TestMemberThawsWhenBallotsAreOver(t *testing.T) {
	everyone := set(nil).complement(5)
	prepare := func(b, proposed Ballot) frame {
		return frame{kind: Prepare, ballot: b, other: proposed, members: everyone}
	}
	cancel := func(b, proposed Ballot) frame { return frame{kind: Cancel, ballot: b, other: proposed} }
	none := Ballot{}
	for what, c := range map[string]struct {
		frames []frame
		frozen bool
	}{
		"a ballot":       {[]frame{prepare(Ballot{1, 0}, none)}, true},
		"it is canceled": {[]frame{prepare(Ballot{1, 0}, none), cancel(Ballot{1, 0}, none)}, false},
		"the next one is canceled": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{2, 0}, none),
			cancel(Ballot{2, 0}, none),
		}, false},
		"the first one was proposed in": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{2, 0}, Ballot{1, 0}),
			cancel(Ballot{2, 0}, Ballot{1, 0}),
		}, true},
		"another's is canceled": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{1, 1}, none),
			cancel(Ballot{1, 1}, none),
		}, true},
		"another's is over, not the last": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{1, 1}, none),
			cancel(Ballot{1, 0}, none),
		}, true},
		"both are canceled": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{1, 1}, none),
			cancel(Ballot{1, 1}, none), cancel(Ballot{1, 0}, none),
		}, false},
		"it comes after its cancel":    {[]frame{cancel(Ballot{1, 0}, none), prepare(Ballot{1, 0}, none)}, false},
		"a lower one after another's":  {[]frame{cancel(Ballot{3, 1}, none), prepare(Ballot{2, 0}, none)}, false},
		"a later one after its cancel": {[]frame{cancel(Ballot{1, 0}, none), prepare(Ballot{2, 0}, none)}, true},
		"a cancel of one before":       {[]frame{prepare(Ballot{2, 0}, none), cancel(Ballot{1, 0}, none)}, true},
		"three, and the last is canceled": {[]frame{
			prepare(Ballot{1, 0}, none), prepare(Ballot{2, 0}, none),
			prepare(Ballot{3, 0}, none), cancel(Ballot{3, 0}, none),
		}, false},
	} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2); c.Log = newTestLog(c.Self, c.View) })
		for _, f := range c.frames {
			a.receive(t, f.ballot.Rank, f)
		}
		if frozen := a.config.Log.(*testLog).frozen; frozen != c.frozen || a.acceptor.frozen != frozen {
			t.Errorf("%s: frozen %t", what, frozen)
		}
		if what == "another's is over, not the last" && a.acceptor.current == nil {
			t.Errorf("%s: it takes part in none", what)
		}
	}
}

// A promise counts in the first phase of its ballot, and an acceptance in the second: an answer to
// another ballot or another question is none.
func TestAnswersCountInTheirPhase(t *testing.T) {
	for _, proposed := range []bool{false, true} {
		for _, kind := range []Kind{Promise, Accept} {
			for round := range uint32(3) {
				a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
				a.Suspect(a.now, 4, 1)
				a.step(a.now)
				if proposed {
					a.answer(t, Promise, a.proposer.ballot, 1, 2, 3)
				}
				a.answer(t, kind, Ballot{round, 0}, 3)
				counts := round == 1 && proposed == (kind == Accept)
				if got := a.acceptor.current.acked.has(3); got != counts {
					t.Errorf("proposed %t, %v of round %d counts: %t", proposed, kind, round, got)
				}
			}
		}
	}
}

// A member in the tree acknowledges when all below it have, to all that have asked. One that asks
// a second time learns at once what is known.
func TestAcknowledgmentsAlongTheTree(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.FlatThreshold = *c.View.Members.At(1), -1 })
	b := Ballot{1, 0}
	prepare := frame{kind: Prepare, ballot: b, members: set(nil).complement(5)}
	a.receive(t, 0, prepare)
	if sent := framesOf(a.Machine, a.now, Promise); len(sent) > 0 || a.stats.Sent[Prepare] != 1 {
		t.Errorf("it promises for others to %d members", len(sent))
	}
	a.receive(t, 2, prepare)
	if sent := framesOf(a.Machine, a.now, Promise); len(sent) != 1 || len(sent[2]) != 1 ||
		sent[2][0].members.count() != 1 {
		t.Errorf("%d members get a promise", len(sent))
	}
	a.answer(t, Promise, b, 3)
	sent := framesOf(a.Machine, a.now, Promise)
	for _, to := range []protocol.Rank{0, 2} {
		if len(sent) != 2 || len(sent[to]) != 1 || sent[to][0].members.count() != 2 {
			t.Errorf("rank %d gets %d promises", to, len(sent[to]))
		}
	}
}

// A member that lacks messages does not answer a proposal, however often it is asked.
func TestAcceptanceWaitsForMessages(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1); c.Log = newTestLog(c.Self, c.View) })
	a.receive(t, 0, frame{kind: Prepare, ballot: Ballot{1, 0}, members: set(nil).complement(5)})
	d := &value{
		number: 2, version: a.view.Version, slots: 5, removed: newSet(5),
		cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
	}
	for range 3 {
		a.receive(t, 0, frame{kind: Propose, ballot: Ballot{1, 0}, value: d})
	}
	if n := a.sentTo(0, Accept); n > 0 {
		t.Errorf("%d acceptances without the messages", n)
	}
	a.config.Log.(*testLog).receive(0, datum{view: 1, root: 0, incarnation: 1})
	a.LogFlushed(a.now)
	if a.sentTo(0, Accept) != 1 {
		t.Error("no acceptance with the messages")
	}
}

// A proposer that has yielded accepts its own proposal when it has the messages, and does not tell
// itself so.
func TestProposerThatHasYieldedAccepts(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.DoubtTimeout, c.Log = 0, newTestLog(c.Self, c.View) })
	a.Suspect(a.now, 4, 1)
	a.step(a.now)
	b := a.proposer.ballot
	for from := range 3 {
		f := frame{
			kind: Promise, ballot: b, members: newSet(5),
			positions: []Position{{Root: 1, Incarnation: 1, Next: 1, Holder: 1}},
		}
		f.members.add(from + 1)
		a.receive(t, protocol.Rank(from+1), f)
	}
	a.receive(t, 1, frame{kind: Refuse, ballot: b, other: Ballot{7, 1}})
	a.run()
	a.config.Log.(*testLog).receive(1, datum{view: 1, root: 1, incarnation: 1})
	a.LogFlushed(a.now)
	if sent := a.sentTo(0, Accept); a.proposer != nil || a.acceptor.accepted != b || sent > 0 {
		t.Errorf("it has yielded: %t, accepted %v, tells itself %d times", a.proposer == nil, a.acceptor.accepted, sent)
	}
}

// The first attempt ends at once for a death, since none has run before it. A later one runs for as
// long as all before it.
func TestAttemptsRunForAsLongAsThoseBefore(t *testing.T) {
	a := newAttempt(t)
	a.Suspect(a.now+1, 3, 1)
	a.step(a.now + 1)
	if a.stats.Canceled != 1 {
		t.Error("the first attempt goes on")
	}
	began := a.acceptor.tried
	for a.proposer == nil {
		a.step(a.Deadline())
	}
	if want := 2*a.now - began; a.proposer.grace != want {
		t.Errorf("at %d, the second attempt runs until %d, want %d", a.now, a.proposer.grace, want)
	}
}

// A canceled ballot is told along the tree, and directly to those that were asked directly.
func TestCanceledBallotIsTold(t *testing.T) {
	for _, direct := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.FlatThreshold = -1 })
		a.Suspect(a.now, 4, 1)
		a.run()
		a.proposer.deadline = protocol.Never
		if direct {
			a.proposer.resend = a.now
			a.run()
		}
		a.Trust(a.now, 4, 1)
		sent := framesOf(a.Machine, a.now, Cancel)
		if told := len(sent[3]) > 0; told != direct || len(sent[1]) == 0 || len(sent[0]) > 0 { // 3 is below 1
			t.Errorf("asked directly %t: told directly %t, %d members are told", direct, told, len(sent))
		}
	}
}
