package membership

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

func TestTreeParent(t *testing.T) {
	for _, size := range []protocol.Rank{2, 7, 64, 100} {
		tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, 0)
		if err != nil {
			t.Fatal(err)
		}
		for r := protocol.Rank(1); r < size; r++ {
			if want, _ := tree.Parent(r); treeParent(int(r)) != int(want) {
				t.Errorf("of %d: the parent of %d is %d, want %d", size, r, treeParent(int(r)), want)
			}
		}
	}
}

// A member that is alone has no member to tell its status.
func TestMemberAloneSendsNothing(t *testing.T) {
	v := firstView(1)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
	if err != nil {
		t.Fatal(err)
	}
	if sent := framesOf(m, 10*second, Status); len(sent) > 0 {
		t.Errorf("it sends %v", sent)
	}
}

// A frozen member sends its status more often, and less and less so: a slow change is not made
// slower.
func TestFrozenMemberAsksMoreOften(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.FlatThreshold = *c.View.Members.At(2), -1 })
	a.step(1000 * second)
	a.status.due = a.now + a.config.StatusInterval
	a.receive(t, 0, frame{kind: Prepare, ballot: Ballot{1, 0}, members: set(nil).complement(5)})
	a.run()
	before, last, gap := a.now, a.now, protocol.Time(0)
	for count := 0; a.now < before+6*second; {
		a.now = min(a.Deadline(), before+6*second)
		if sent := a.stats.Sent[Status]; func() bool { a.run(); return a.stats.Sent[Status] == sent }() {
			continue
		}
		switch count++; {
		case count == 1 && a.now != before+2*a.config.AttemptTimeout:
			t.Errorf("the first status comes after %d ms", (a.now-before)/millisecond)
		case count > 1 && (a.now-last < gap || a.now-last < a.config.AttemptTimeout || a.now-last > a.config.StatusInterval):
			t.Errorf("status %d comes %d ms after the last, that %d ms after its", count, (a.now-last)/millisecond,
				gap/millisecond)
		case count == 5 && a.now > before+3*second:
			t.Errorf("5 statuses take %d ms", (a.now-before)/millisecond)
		}
		gap = a.now - last
		if count == 1 {
			gap = 0
		}
		last = a.now
	}
}

// A member tells its status to its neighbor and to its parent in turn. While members are
// unreachable, it tells those at distances 1, 2, 4, … on the ring. Without a quorum, the members that it
// suspects get every other status: they may be back, and not know this one.
func TestReceiversOfStatus(t *testing.T) {
	for _, c := range []struct {
		self     int
		suspects []protocol.Rank
		want     []int
	}{
		{5, nil, []int{6, 1, 6, 1, 6}},
		{5, []protocol.Rank{2}, []int{6, 7, 1, 6, 7}},
		{5, []protocol.Rank{0, 1, 2, 4}, []int{6, 0, 7, 1, 1, 2, 6, 4, 7, 0}},
		{0, nil, []int{1, 1, 1, 1, 1}},
		{7, nil, []int{0, 3, 0, 3, 0}},
	} {
		v := firstView(8)
		m, err := New(Config{Self: *v.Members.At(c.self), View: v, Log: forgetfulLog{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.suspects {
			m.Suspect(1, r, 1)
		}
		for turn, want := range c.want {
			m.status.turn = turn
			if m.statusReceiver(8) != want {
				t.Errorf("rank %d, turn %d, suspects %v: index %d, want %d", c.self, turn, c.suspects,
					m.statusReceiver(8), want)
			}
		}
	}
}

// In a small group, a participant that waits for the next frame of a change asks the owner of the
// ballot. An owner does not ask itself, and a member that knows the decision need not ask.
func TestParticipantsAskTheOwner(t *testing.T) {
	for what, c := range map[string]struct {
		asks bool
		do   func(a *asker)
	}{
		"it takes part": {true, func(a *asker) {
			a.receive(t, 1, frame{kind: Prepare, ballot: Ballot{1, 1}, members: set(nil).complement(5)})
		}},
		"nothing": {false, func(*asker) {}},
		"the group is large": {false, func(a *asker) {
			a.config.FlatThreshold = -1
			a.receive(t, 1, frame{kind: Prepare, ballot: Ballot{1, 1}, members: set(nil).complement(5)})
		}},
		"it is decided": {false, func(a *asker) {
			a.receive(t, 1, frame{kind: Prepare, ballot: Ballot{1, 1}, members: set(nil).complement(5)})
			a.acceptor.decided = &value{number: 2}
		}},
		"it is canceled": {false, func(a *asker) {
			a.receive(t, 1, frame{kind: Prepare, ballot: Ballot{1, 1}, members: set(nil).complement(5)})
			a.receive(t, 1, frame{kind: Cancel, ballot: Ballot{1, 1}})
		}},
	} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(3) })
		if a.stats.Sent[Status] > 0 {
			t.Error("a member tells its status before it has been one for long")
		}
		c.do(a)
		a.run()
		a.status.turn, a.status.due = 0, a.now // the turn of its neighbor
		if asks := a.sentTo(1, Status) == 1; asks != c.asks {
			t.Errorf("%s: it asks the owner: %t", what, asks)
		}
	}
	owner := newAttempt(t)
	owner.status.turn, owner.status.due = 0, owner.now
	if n := owner.sentTo(0, Status); n > 0 {
		t.Errorf("it asks itself %d times", n)
	}
}
