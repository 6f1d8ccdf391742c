package membership

import (
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// "An arbiter grants view n of a group to at most one side": two voters, and the halves of four,
// never decide two views of one number, whatever is late, lost or comes twice, the arbiter's answers
// included.
func TestExploreWithArbiter(t *testing.T) {
	for _, b := range []bounds{
		{members: 2, suspicions: 2},
		{members: 2, suspicions: 2, unanswered: 1, repeated: 1},
		{members: 2, crashes: 1, suspicions: 2, sends: 1, ticks: 1, unanswered: 1},
		{members: 2, suspicions: 3, trusts: 2, ticks: 4, unanswered: 1, repeated: 2, states: 10_000, deep: true},
		{members: 2, suspicions: 2, trusts: 1, ticks: 4, leaves: 1, repeated: 1, states: 10_000, deep: true},
		{members: 2, suspicions: 2, trusts: 1, ticks: 4, joins: 1, repeated: 1, states: 10_000, deep: true},
		{members: 3, crashes: 1, suspicions: 4, sends: 1, ticks: 3, unanswered: 1, repeated: 1, states: 10_000, deep: true},
		{members: 4, crashes: 1, suspicions: 6, sends: 1, ticks: 2, unanswered: 1, repeated: 1, states: 10_000, deep: true},
		{
			members: 4, observers: ranked(1, 2), suspicions: 4, ticks: 2, roles: 1, unanswered: 1, repeated: 1,
			states: 10_000, deep: true,
		},
	} {
		b.arbiter = true
		switch {
		case testutil.Full.On():
			b.states *= 50
		case b.states > 0 && (testutil.RaceEnabled || testing.Short()):
			b.states = 2000
		}
		explore(b, nil).report(t, b)
	}
}

// With a rule that is broken, the search finds two views of one number.
func TestExplorerFindsABrokenArbitration(t *testing.T) {
	half := func(v *View, s set) bool { e := v.electorate(); return 2*e.among(s) >= e.count }
	for what, c := range map[string]struct {
		bounds    bounds
		configure func(*Config)
	}{
		"half without a grant": {
			bounds{members: 2, suspicions: 2, arbiter: true}, func(c *Config) { c.isQuorum = half },
		},
		"an answer about an old view": {
			bounds{
				members: 2, suspicions: 4, trusts: 2, ticks: 6, repeated: 2, mistaken: true, arbiter: true,
				states: 400_000, deep: true,
			}, nil,
		},
	} {
		e := explore(c.bounds, c.configure)
		if e.violation == nil {
			t.Errorf("%s: nothing found in %d states", what, len(e.seen))
			continue
		}
		t.Logf("%s: after %d states: %v\n  %s", what, len(e.seen), e.violation, strings.Join(e.trail, "\n  "))
	}
}

// arbitrated returns the machine of one of some members, with an arbiter.
func arbitrated(t *testing.T, size int, self protocol.Rank) *asker {
	v := firstView(size)
	m, err := New(Config{Self: *v.Members.At(int(self)), View: v, Log: new(voterLog), Arbiter: true})
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Machine: m}
	a.step(second)
	return a
}

// suspect lets the machine suspect members, and returns what it asks the arbiter.
func (a *asker) suspect(t *testing.T, ranks ...protocol.Rank) Claim {
	t.Helper()
	for _, r := range ranks {
		a.Suspect(a.now, r, 1)
	}
	a.step(a.now)
	c, ok := a.NextClaim()
	if !ok {
		t.Fatalf("without %v, it asks the arbiter nothing", ranks)
	}
	return c
}

// Either of two members goes on without the other once the arbiter has granted it the next view.
func TestEitherOfTwoGoesOnWithAGrant(t *testing.T) {
	for self := range protocol.Rank(2) {
		a := arbitrated(t, 2, self)
		claim := a.suspect(t, 1-self)
		if claim.View != 2 || len(claim.Side) != 1 || claim.Side[0].Rank != self {
			t.Fatalf("rank %d asks for %+v", self, claim)
		}
		if _, ok := a.NextClaim(); ok {
			t.Error("it asks again before there is an answer")
		}
		if reachable, needed, ok := a.Quorum(); ok || reachable != 1 || needed != 2 {
			t.Errorf("before the grant, %d of %d are a quorum: %t", reachable, needed, ok)
		}
		a.Judge(a.now, claim, Granted)
		a.step(a.now)
		v := a.View()
		if v.Number != 2 || v.Members.Len() != 1 {
			t.Fatalf("rank %d is in %v after the grant", self, &v)
		}
		if reachable, needed, ok := a.Quorum(); !ok || reachable != 1 || needed != 1 {
			t.Errorf("one of one: %d of %d, %t", reachable, needed, ok)
		}
	}
}

// A side that was refused has no quorum, and says why. It does not ask again.
func TestRefusedSideStops(t *testing.T) {
	a := arbitrated(t, 2, 0)
	claim := a.suspect(t, 1)
	a.Judge(a.now, claim, Refused)
	a.step(a.now + second)
	var lost *QuorumError
	state, err := a.State()
	if state != NoQuorum || !errors.As(err, &lost) || lost.Arbiter != Refused || lost.Needed != 2 {
		t.Errorf("%v: %v", state, err)
	}
	if _, ok := a.NextClaim(); ok || a.View().Number != 1 {
		t.Errorf("it asks again: %t, and is in view %d", ok, a.View().Number)
	}
}

// An arbiter that does not answer is asked again, after pauses that grow up to a bound.
func TestSilentArbiterIsAskedAgain(t *testing.T) {
	a := arbitrated(t, 2, 1)
	claim, longest := a.suspect(t, 0), protocol.Time(0)
	for range 12 {
		a.Judge(a.now, claim, Unanswered)
		var lost *QuorumError
		if _, err := a.State(); !errors.As(err, &lost) || lost.Arbiter != Unanswered {
			t.Fatal(err)
		}
		asked := a.now
		for {
			a.step(a.Deadline())
			if next, ok := a.NextClaim(); ok {
				claim = next
				break
			}
			if a.now > asked+maxClaimPause*a.config.AttemptTimeout {
				t.Fatalf("it does not ask for %d ms", (a.now-asked)/millisecond)
			}
		}
		if pause := a.now - asked; pause < a.config.AttemptTimeout || pause < longest {
			t.Fatalf("it asks after %d ms, before that after %d", pause/millisecond, longest/millisecond)
		}
		longest = a.now - asked
	}
	a.Judge(a.now, claim, Granted)
	a.step(a.now)
	if a.View().Number != 2 {
		t.Errorf("it has the grant, and is in view %d", a.View().Number)
	}
}

// An answer about another view, or about members that are not half of the voters, has no effect.
func TestStaleVerdictsAreIgnored(t *testing.T) {
	members := firstView(4)
	side := func(ranks ...int) (list []Member) {
		for _, r := range ranks {
			list = append(list, *members.Members.At(r))
		}
		return list
	}
	former := side(0, 1)
	former[0].Incarnation = 9
	for what, claim := range map[string]Claim{
		"the view before":     {1, side(0, 1)},
		"a later view":        {3, side(0, 1)},
		"the other half":      {2, side(2, 3)},
		"a minority":          {2, side(0)},
		"another incarnation": {2, former},
	} {
		a := arbitrated(t, 4, 0)
		a.suspect(t, 2, 3)
		a.Judge(a.now, claim, Granted)
		a.step(a.now)
		if _, _, ok := a.Quorum(); ok || a.proposer != nil {
			t.Errorf("%s: it is a quorum", what)
		}
	}
	a := arbitrated(t, 4, 0)
	a.Judge(a.now, a.suspect(t, 2, 3), Granted)
	a.step(a.now)
	if _, _, ok := a.Quorum(); !ok || a.proposer == nil {
		t.Error("the grant for its own side does not count")
	}
}

// A member that has asked for a view wants it, although the other is back: it may be granted, and the
// other could not continue in that view.
func TestClaimedViewIsUsed(t *testing.T) {
	for self := range protocol.Rank(2) {
		a := arbitrated(t, 2, self)
		a.Judge(a.now, a.suspect(t, 1-self), Unanswered)
		a.Trust(a.now, 1-self, 1)
		a.step(a.now)
		attempts, tells := a.proposer != nil, false
		for range 3 {
			for _, f := range framesOf(a.Machine, a.Deadline(), Status)[0] {
				tells = tells || f.stuck
			}
		}
		if attempts != (self == 0) || tells != (self == 1) {
			t.Errorf("rank %d attempts it: %t, tells the coordinator: %t", self, attempts, tells)
		}
	}
}

// A group that needs no quorum has no arbiter.
func TestArbiterNeedsQuorums(t *testing.T) {
	v := firstView(2)
	_, err := New(Config{Self: *v.Members.At(0), View: v, Log: new(voterLog), Arbiter: true, NoQuorum: true})
	if !errors.Is(err, ErrArbiterQuorum) {
		t.Error(err)
	}
}
