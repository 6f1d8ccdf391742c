package membership

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// newCaster returns a member of 40 that gets a commit along the tree. It is a leaf.
func newCaster(t *testing.T) (*Machine, *value) {
	t.Helper()
	v := firstView(40)
	self := *v.Members.At(39)
	m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v), FlatThreshold: -1})
	if err != nil {
		t.Fatal(err)
	}
	m.Next(1) // it sees the clock
	commit := frame{kind: Commit, view: 2, incarnation: 1, root: 0, value: removal(&v)}
	if err := m.Receive(1, 7, commit.append(nil)); err != nil {
		t.Fatal(err)
	}
	return m, commit.value
}

// A member that has a commit offers it to its left neighbor at once, and asks its right neighbor
// after a while. As long as none answers, it asks further ones, less and less often.
func TestCommitIsCorrected(t *testing.T) {
	m, v := newCaster(t)
	routes := func(until protocol.Time) (count [routes]int) {
		for _, sent := range framesOf(m, until, Commit) {
			for _, f := range sent {
				count[f.route]++
				if f.root != 0 || f.value.number != v.number {
					t.Errorf("%+v", f)
				}
			}
		}
		return count
	}
	pause := m.config.RetryInterval / correctionDelay
	if got := routes(pause); got[leftward] != 1 || got[rightward] != 0 || got[byTree] != 0 {
		t.Errorf("at once: %v", got)
	}
	asked := 0
	for _, until := range []protocol.Time{1 + pause, 1 + 2*pause, 1 + 6*pause, 1 + 22*pause, 1 + 86*pause} {
		if got := routes(until - 1); got[rightward] != 0 {
			t.Errorf("%d questions before %d", got[rightward], until)
		}
		got := routes(until)
		asked += got[rightward]
		if got[rightward] != 1 {
			t.Errorf("%d questions at %d, after %d", got[rightward], until, asked)
		}
	}
}

// A member whose right neighbor answers asks no further one.
func TestCorrectedCommitIsOver(t *testing.T) {
	m, v := newCaster(t)
	answer := frame{kind: Commit, view: 2, incarnation: 1, root: 0, route: leftward, value: v}
	if err := m.Receive(1, 0, answer.append(nil)); err != nil {
		t.Fatal(err)
	}
	for to, sent := range framesOf(m, second, Commit) {
		for _, f := range sent {
			if f.route == rightward {
				t.Errorf("it asks rank %d", to)
			}
		}
	}
}

// A member that asks for an answer to a commit gets one, also of a member that has it from
// elsewhere. A commit that asks for none gets none.
func TestCommitIsAnswered(t *testing.T) {
	for route := range routes {
		for _, situation := range []string{"it takes part", "it is a straggler", "an earlier one", "a later member"} {
			v := firstView(40)
			self := *v.Members.At(5)
			m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v), FlatThreshold: -1})
			if err != nil {
				t.Fatal(err)
			}
			commit := frame{kind: Commit, view: 2, incarnation: 1, value: removal(&v)}
			if situation == "it is a straggler" {
				if err := m.Learn(1, Decisions{[]*value{commit.value}}); err != nil {
					t.Fatal(err)
				}
			} else if err := m.Receive(1, 4, commit.append(nil)); err != nil {
				t.Fatal(err)
			}
			framesOf(m, 1, Commit)
			commit.route = route
			from := protocol.Rank(4)
			switch situation {
			case "an earlier one":
				earlier := *commit.value
				earlier.number--
				commit.value = &earlier
			case "a later member":
				from = 77
			}
			if err := m.Receive(1, from, commit.append(nil)); err != nil {
				t.Fatal(err)
			}
			sent := framesOf(m, 1, Commit)[from]
			if answered := len(sent) == 1 && sent[0].route == leftward &&
				sent[0].value.number == commit.value.number; answered != (route == rightward) {
				t.Errorf("route %d, %s: %d answers", route, situation, len(sent))
			}
		}
	}
}

// A straggler that gets a decision keeps it to itself: the others have it.
func TestStragglerBroadcastsNothing(t *testing.T) {
	ahead, v := newCaster(t)
	ahead.outbox, ahead.sent = nil, 0
	ahead.sendMissed(&frame{from: 3, view: 1, incarnation: 1})
	told := framesOf(ahead, 1, Commit)[3]
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	first := firstView(40)
	self := *first.Members.At(3)
	m, err := New(Config{Self: self, View: first, Log: newTestLog(self, first), FlatThreshold: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Receive(1, 39, told[0].append(nil)); err != nil {
		t.Fatal(err)
	}
	if sent := framesOf(m, second, Commit); len(sent) > 0 || m.view.Number != v.number {
		t.Errorf("in view %d, it tells %d others", m.view.Number, len(sent))
	}
}

// A member that is removed although it lives learns it from the decision, and not only when it asks.
func TestRemovedMembersAreTold(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		n := newNetwork(t, 20, 1, way)
		n.suspect(n.hosts[0], n.hosts[13].self)
		n.pump(n.hosts[0])
		if !n.run(10*time.Millisecond, func() bool { return n.hosts[13].m.done != nil }) {
			t.Error(n.situation())
		}
	})
}

// Two members may broadcast one decision. Members that share what they work out pass on either as
// those that do not.
func TestSharedBroadcastsHaveTheirRoots(t *testing.T) {
	first := firstView(40)
	whole := func(self protocol.Rank, k *memo) map[protocol.Rank][]*frame {
		member, _ := first.Member(self)
		c := Config{Self: member, View: first, Log: forgetfulLog{}, FlatThreshold: -1}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		m := newMachine(c, k)
		m.decide(1, removal(&first), self)
		return framesOf(m, 1, Commit)
	}
	shared := &memo{}
	for _, root := range []protocol.Rank{0, 1, 0} {
		got, want := whole(root, shared), whole(root, &memo{})
		if len(got) != len(want) || len(want) < 5 {
			t.Errorf("rank %d sends to %d members, alone to %d", root, len(got), len(want))
		}
		for to := range want {
			if len(got[to]) != len(want[to]) {
				t.Errorf("rank %d sends %d frames to %d, alone %d", root, len(got[to]), to, len(want[to]))
			}
		}
	}
}
