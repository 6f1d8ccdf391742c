package membership

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// A member that is stopped, and not suspected yet, freezes the others only for the
// short first attempt at a view without another one. The view comes as soon as the
// stopped member is suspected or goes on.
func TestStoppedMemberFreezesOthersBriefly(t *testing.T) {
	bothWays(t, stoppedMemberFreezesOthersBriefly)
}

func stoppedMemberFreezesOthersBriefly(t *testing.T, way func(*Config)) {
	const (
		stopped, killed = 5, 7
		longest         = 100 * millisecond
		soon            = 50 * time.Millisecond
	)
	for _, suspected := range []bool{true, false} {
		n := newNetwork(t, 10, 1, way)
		n.stop(stopped)
		n.kill(killed)
		n.suspectAll(killed)
		var frozen protocol.Time
		n.run(2*time.Second, func() bool {
			for _, h := range n.hosts {
				if h.id != stopped && h.id != killed && h.log.frozen {
					frozen = max(frozen, n.now-h.m.acceptor.since)
				}
			}
			return false
		})
		if frozen == 0 || frozen > longest {
			t.Errorf("members were frozen for up to %d ns, want at most %d and more than none", frozen, longest)
		}
		want := without(10, killed)
		if suspected {
			n.suspect(n.hosts[4], n.hosts[stopped].self)
			n.pump(n.hosts[4])
			want = without(10, stopped, killed)
		} else {
			n.resume(stopped)
		}
		if !n.run(soon+time.Duration(maxBackoff*n.hosts[0].m.config.RetryInterval), func() bool { return n.hosts[0].m.view.Number == 2 }) {
			t.Fatalf("suspected %v: no view\n%s", suspected, n.situation())
		}
		wantRanks(t, &n.hosts[0].m.view, want)
	}
}
