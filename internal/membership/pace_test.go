package membership

import (
	"testing"
	"time"
)

// Where every answer takes longer than the usual timeouts, as on an overloaded host, a
// change still goes through after a few attempts, and no live member is left out.
func TestAttemptsAdaptToSlowAnswers(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		for _, latency := range []time.Duration{300 * time.Millisecond, time.Second} {
			n := newNetwork(t, 20, 1, way)
			n.latency = latency
			n.kill(7)
			n.suspectAll(7)
			if !n.run(40*latency, n.agreed) {
				t.Fatalf("latency %v: no view\n%s", latency, n.situation())
			}
			wantRanks(t, &n.hosts[0].m.view, without(20, 7))
			if b := n.hosts[0].m.Stats().Ballots; b > 3 {
				t.Errorf("latency %v: %d attempts", latency, b)
			}
		}
	})
}

// A member that is no longer suspected when the others have promised is not removed.
func TestWithdrawnSuspicionRemovesNoMember(t *testing.T) {
	n := newNetwork(t, 10, 1, nil)
	n.kill(7)
	n.suspectAll(7)
	coordinator := n.hosts[0]
	n.suspect(coordinator, n.hosts[3].self)
	n.pump(coordinator)
	if coordinator.m.proposer == nil {
		t.Fatal("no attempt")
	}
	delete(coordinator.sees, 3)
	coordinator.m.Trust(n.now, 3, n.hosts[3].self.Incarnation)
	n.pump(coordinator)
	wantRanks(t, n.settle(), without(10, 7))
	if n.evictions > 0 {
		t.Errorf("%d members were removed", n.evictions)
	}
}
