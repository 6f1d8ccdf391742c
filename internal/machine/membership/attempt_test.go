package membership

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// some returns a set of members of five.
func some(members ...int) set {
	s := newSet(5)
	for _, i := range members {
		s.add(i)
	}
	return s
}

// A relay passes the end of a ballot on to those below it.
func TestCancelIsPassedOn(t *testing.T) {
	for what, ballot := range map[string]Ballot{"its ballot": {2, 0}, "another": {1, 0}} {
		a := newAsker(t, func(c *Config) { c.Self, c.FlatThreshold = *c.View.Members.At(1), -1 })
		a.receive(t, 0, frame{kind: Prepare, ballot: Ballot{2, 0}, members: some(0, 1, 2, 3, 4)})
		children := a.acceptor.current.children
		a.receive(t, 0, frame{kind: Cancel, ballot: ballot})
		if sent := framesOf(a.Machine, a.now, Cancel); len(children) == 0 || len(sent) > 0 != (what == "its ballot") {
			t.Errorf("%s ends, and %d of %d are told", what, len(sent), len(children))
		}
	}
}

// A ballot that has ended freezes no member, even if what began it comes late. It ends no other.
func TestCanceledBallotFreezesNoMember(t *testing.T) {
	whole := some(0, 1, 2, 3, 4)
	ballot := Ballot{2, 1}
	prepare, end := frame{kind: Prepare, ballot: ballot, members: whole}, frame{kind: Cancel, ballot: ballot}
	for what, c := range map[string]struct {
		frames []frame
		frozen bool
	}{
		"a ballot":                     {[]frame{prepare}, true},
		"its end":                      {[]frame{prepare, end}, false},
		"its end first":                {[]frame{end, prepare}, false},
		"the end of an earlier one":    {[]frame{prepare, {kind: Cancel, ballot: Ballot{1, 1}}}, true},
		"the end of a later one":       {[]frame{prepare, {kind: Cancel, ballot: Ballot{3, 1}}}, false},
		"a later one that has a value": {[]frame{prepare, {kind: Cancel, ballot: Ballot{3, 1}, other: ballot}}, true},
		"a later one of another":       {[]frame{prepare, {kind: Cancel, ballot: Ballot{3, 0}}}, true},
		"two, and the end of one":      {[]frame{prepare, {kind: Prepare, ballot: Ballot{3, 0}, members: whole}, end}, true},
		"two, and the end of both": {[]frame{
			prepare,
			{kind: Prepare, ballot: Ballot{3, 0}, members: whole},
			end,
			{kind: Cancel, ballot: Ballot{3, 0}},
		}, false},
	} {
		a := newAsker(t, func(c *Config) { c.Self, c.Log = *c.View.Members.At(3), newTestLog(c.Self, c.View) })
		for _, f := range c.frames {
			a.receive(t, f.ballot.Rank, f)
			if p := a.acceptor.current; f.kind == Cancel && p != nil && p.ballot == f.ballot {
				t.Errorf("%s: ballot %v goes on", what, f.ballot)
			}
		}
		if frozen := a.config.Log.(*testLog).frozen; frozen != c.frozen || a.acceptor.frozen != c.frozen {
			t.Errorf("%s: frozen %t", what, frozen)
		}
		if err := a.invariant(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		promised := Ballot{}
		for _, f := range c.frames {
			if promised.less(f.ballot) {
				promised = f.ballot
			}
		}
		if a.acceptor.promised != promised {
			t.Errorf("%s: %v is promised, want %v", what, a.acceptor.promised, promised)
		}
	}
}

// A member that has promised a higher ballot does not accept what was proposed in a lower one,
// although the messages that it waited for arrive.
func TestMemberThatHasPromisedMoreDoesNotAccept(t *testing.T) {
	for _, higher := range []bool{false, true} {
		var log *testLog
		a := newAsker(t, func(c *Config) {
			c.Self = *c.View.Members.At(3)
			log = newTestLog(c.Self, c.View)
			c.Log = log
		})
		ballot := Ballot{1, 1}
		v := &value{
			number: 2, version: a.view.Version, slots: 5, removed: newSet(5),
			cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
		}
		a.receive(t, 1, frame{kind: Prepare, ballot: ballot, members: some(0, 1, 2, 3, 4)})
		a.receive(t, 1, frame{kind: Propose, ballot: ballot, value: v})
		if higher {
			a.receive(t, 2, frame{kind: Cancel, ballot: Ballot{2, 2}})
		}
		log.receive(0, datum{view: 1, root: 0, incarnation: 1})
		a.LogFlushed(a.now)
		if accepted := len(framesOf(a.Machine, a.now, Accept)[1]) > 0; accepted == higher {
			t.Errorf("it has promised more: %t, it accepts: %t", higher, accepted)
		}
	}
}

// A restarted voter along a tree accepts when the last of those below it has accepted.
func TestRestartedVoterAcceptsWithThoseBelow(t *testing.T) {
	v := firstView(5)
	m, err := Restore(Config{Log: new(voterLog), FlatThreshold: -1}, NewSavedVote(*v.Members.At(1), v, Decisions{}))
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Machine: m}
	ballot := Ballot{1, 0}
	a.receive(t, 0, frame{kind: Prepare, ballot: ballot, members: some(0, 1, 2, 3, 4)})
	a.receive(t, 0, frame{kind: Propose, ballot: ballot, value: &value{number: 2, slots: 5, removed: newSet(5)}})
	below := slices.Clone(a.acceptor.current.subtree)
	below.remove(1)
	if below.count() == 0 || len(framesOf(m, 1, Accept)) > 0 {
		t.Fatalf("it accepts before %v", below.each())
	}
	a.answer(t, Accept, ballot, below.each()...)
	if sent := framesOf(m, 1, Accept)[0]; len(sent) != 1 || !sent[0].members.has(1) {
		t.Errorf("it does not accept: %v", sent)
	}
}

// A participant that gets no further frame asks the owner of the ballot soon: in a small group
// nothing is corrected.
func TestParticipantAsksTheOwnerOfTheBallot(t *testing.T) {
	for _, flat := range []int{-1, DefaultFlatThreshold} {
		a := newAsker(t, func(c *Config) { c.Self, c.FlatThreshold = *c.View.Members.At(3), flat })
		a.receive(t, 2, frame{kind: Prepare, ballot: Ballot{1, 2}, members: some(0, 1, 2, 3, 4)}) // which is not its neighbor
		begun := a.now
		early := framesOf(a.Machine, begun+a.config.RetryInterval-1, Status)
		soon := framesOf(a.Machine, begun+a.config.RetryInterval, Status)
		if len(early[2]) > 0 || len(soon[2]) > 0 != (flat > 0) {
			t.Errorf("flat up to %d: it asks %d times, before that %d", flat, len(soon[2]), len(early[2]))
		}
		stuck := begun + 2*a.config.AttemptTimeout
		if early, again := framesOf(a.Machine, stuck-1, Status), framesOf(a.Machine, stuck, Status); flat > 0 &&
			(len(early[2]) > 0 || len(again[2]) != 1) {
			t.Errorf("it asks %d times again, before that %d", len(again[2]), len(early[2]))
		}
	}
}

// A joiner does not get the place of a member that takes part in the change, although another
// member has found that one gone.
func TestParticipantKeepsItsPlace(t *testing.T) {
	for _, gone := range []bool{true, false} {
		a := newAsker(t, nil)
		joiner := Member{Rank: protocol.NoRank, Identity: "p3", Address: "elsewhere", Nonce: 9, Version: a.view.Version}
		a.candidates = []candidate{{Member: joiner, gone: gone}}
		v := a.compose(some(0, 1, 2, 3, 4), nil)
		if next, err := a.apply(v); err != nil || next.Holds(3, 1) != gone || len(v.added) == 1 == gone {
			t.Errorf("gone %t: %v, %v", gone, next, err)
		}
	}
}

// The attempt after news begins when there were none for a part of the time in which they came.
func TestNextAttemptWaitsForNews(t *testing.T) {
	a := newAttempt(t)
	a.step(a.acceptor.tried + quietShare*millisecond)
	a.Suspect(a.now, 3, 1)
	a.step(a.now)
	begins := a.now + millisecond
	a.step(begins - 1)
	if a.stats.Ballots != 1 {
		t.Errorf("%d attempts, and more news may come", a.stats.Ballots)
	}
	a.step(begins)
	if a.stats.Ballots != 2 {
		t.Errorf("%d attempts after the news", a.stats.Ballots)
	}
}

// A member holds the first and the last ballot of an owner: those between are held with the first.
func TestFirstAndLastBallotAreHeld(t *testing.T) {
	var r acceptor
	for _, b := range []Ballot{{1, 0}, {1, 1}, {2, 0}, {3, 0}, {3, 1}, {4, 0}} {
		r.hold(b)
	}
	if want := []Ballot{{1, 0}, {1, 1}, {3, 1}, {4, 0}}; !slices.Equal(r.holds, want) {
		t.Errorf("%v are held, want %v", r.holds, want)
	}
}

// A coordinator that lacks the means to reach others takes none of them for silent.
func TestImpairedCoordinatorBlamesNoMember(t *testing.T) {
	for impaired, want := range map[bool]int{false: 4, true: 1} {
		a := newAttempt(t)
		a.SetImpaired(impaired)
		a.acceptor.tried = a.now - 2*a.patience()
		a.step(a.proposer.deadline)
		if len(a.Unreachable()) != want {
			t.Errorf("impaired %t: %v are unreachable", impaired, a.Unreachable())
		}
	}
}

// A member that does not coordinate any more pings none of those that it has waited for.
func TestOnlyTheCoordinatorPings(t *testing.T) {
	for _, abstains := range []bool{false, true} {
		a := newAttempt(t)
		a.step(a.proposer.deadline)
		a.abstains = abstains
		if pinged := len(framesOf(a.Machine, a.now+second, Ping)) > 0; pinged == abstains {
			t.Errorf("abstains %t: it pings: %t", abstains, pinged)
		}
	}
}

// unsortedLog has the positions of its streams in no order.
type unsortedLog struct{ testLog }

func (*unsortedLog) Freeze() []Position {
	return []Position{
		{Root: 2, Incarnation: 1, Next: 7},
		{Root: 0, Incarnation: 1, Next: 9},
		{Root: 1, Incarnation: 1, Next: 8},
	}
}

// The positions of a promise are in order, whatever the log returns, and name their holder.
func TestPositionsAreInOrder(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.Log = *c.View.Members.At(3), &unsortedLog{} })
	a.receive(t, 0, frame{kind: Prepare, ballot: Ballot{1, 0}, members: some(0, 1, 2, 3, 4)})
	sent := framesOf(a.Machine, a.now, Promise)[0]
	if len(sent) != 1 || !slices.IsSortedFunc(sent[0].positions, compareStream) || sent[0].positions[0].Holder != 3 {
		t.Errorf("%+v", sent)
	}
}

// A member that is asked for a sign of life gives one.
func TestSignOfLifeIsGiven(t *testing.T) {
	for _, asks := range []bool{false, true} {
		a := newAsker(t, nil)
		a.receive(t, 3, frame{kind: Status, asks: asks})
		if sent := framesOf(a.Machine, a.now, Status)[3]; len(sent) == 1 != asks {
			t.Errorf("asked %t: %d answers", asks, len(sent))
		}
	}
}
