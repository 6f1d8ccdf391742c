package membership

import (
	"testing"
	"time"
)

// A coordinator has learned in a storm that answers take 5 s. After it, a question that is
// lost is repeated soon, and the coordinator learns that answers are quick again: otherwise
// all members are frozen for seconds although none is slow.
func TestLostQuestionIsRepeatedSoonAfterAStorm(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		const learned = 5 * second
		n := newNetwork(t, 20, 1, way)
		n.hosts[0].m.pace.answer = learned
		lossy := n.now + 30*millisecond
		n.blocked = func(from, _ *host) bool { return n.now < lossy && from.id == 0 }
		n.kill(2)
		n.suspectAll(2)
		wantRanks(t, n.settleWithin(time.Second), without(20, 2))
		if after := n.hosts[0].m.pace.answer; after > learned/2 {
			t.Errorf("answers are quick, and the coordinator expects them after %d ms", after/millisecond)
		}
	})
}

// When a question is answered late, it is repeated a few times only.
func TestLateAnswersAreAskedForAFewTimes(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	m := n.hosts[0].m
	m.pace.answer = 10 * second
	tries := 0
	for asked := m.askAgain(0); asked < m.pace.answer; asked += m.askAgain(tries) {
		tries++
	}
	if tries > 8 {
		t.Errorf("asked %d times again", tries)
	}
}

// An attempt that lacks only members that are known to be dead ends at once, however long
// the attempts before it took.
func TestAttemptThatLacksOnlyTheDeadEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		n := newNetwork(t, 20, 1, way)
		m := n.hosts[0].m
		m.pace.answer = 5 * second
		n.kill(2, 5)
		n.suspectAll(2)
		n.run(20*time.Millisecond, nil)
		if m.proposer == nil {
			t.Fatal("no attempt")
		}
		m.proposer.grace = n.now + 30*second
		n.suspectAll(5)
		wantRanks(t, n.settleWithin(time.Second), without(20, 2, 5))
	})
}

// A suspicion that is withdrawn before anything is proposed removes no member.
func TestMemberHeardBeforeTheProposalStays(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		n := newNetwork(t, 20, 1, way)
		n.latency = 10 * time.Millisecond
		coordinator, slow := n.hosts[0], n.hosts[3]
		n.kill(2)
		n.suspect(coordinator, slow.self)
		n.suspectAll(2)
		n.run(15*time.Millisecond, nil)
		if p := coordinator.m.acceptor.current; p == nil || p.proposal != nil || p.members.has(3) {
			t.Fatal("no attempt without the member")
		}
		coordinator.m.Trust(n.now, slow.self.Rank, slow.self.Incarnation)
		n.pump(coordinator)
		wantRanks(t, n.settleWithin(time.Second), without(20, 2))
	})
}
