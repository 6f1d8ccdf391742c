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
		if !n.run(soon+time.Duration(maxBackoff*n.hosts[0].m.config.RetryInterval),
			func() bool { return n.hosts[0].m.view.Number == 2 }) {
			t.Fatalf("suspected %v: no view\n%s", suspected, n.situation())
		}
		wantRanks(t, &n.hosts[0].m.view, want)
	}
}

// How long answers to pings take is known when at least half of those that were pinged together
// have answered. An answer before the first ping teaches nothing.
func TestPongsTeachThePace(t *testing.T) {
	for awaited, most := range map[int]int{2: 1, 3: 2} {
		a := newAsker(t, nil).awaits()
		a.await(a.now, []int{1, 2, 3}[:awaited])
		a.run()
		a.now += 10 * millisecond
		for from := range awaited {
			if known := a.pace.answer > 0; known != (from >= most) {
				t.Errorf("after %d of %d answers, the pace is known: %t", from, awaited, known)
			}
			a.receive(t, protocol.Rank(1+from), frame{kind: Pong})
			a.now += millisecond
		}
		if want := 10*millisecond + protocol.Time(most-1)*millisecond; a.pace.answer != want {
			t.Errorf("answers take %d, want %d", a.pace.answer, want)
		}
	}
	a := newAsker(t, nil).awaits()
	a.now += second
	a.Up(a.now, 1)
	if a.pace.answer != 0 {
		t.Errorf("a member that connects teaches %d", a.pace.answer)
	}
}

// A wait that another change has left behind does not count against members: they get the full
// patience with the next change.
func TestEachChangeHasItsPatience(t *testing.T) {
	a := newAsker(t, nil).awaits()
	a.now += 100 * second
	a.acceptor.tried, a.pace = 0, pace{}
	a.run()
	if len(a.Unreachable()) != 1 {
		t.Errorf("unreachable are %v", a.Unreachable())
	}
}

// A coordinator pings no member while an attempt runs: the attempt is a question, too.
func TestNoPingsDuringAnAttempt(t *testing.T) {
	a := newAsker(t, nil).awaits()
	a.Suspect(a.now, 1, 1)
	for a.step(a.now); a.proposer == nil; a.step(a.Deadline()) {
	}
	a.Trust(a.now, 1, 1)
	if n := a.sentTo(1, Ping); n > 0 || a.proposer == nil {
		t.Errorf("%d pings, an attempt runs: %t", n, a.proposer != nil)
	}
}
