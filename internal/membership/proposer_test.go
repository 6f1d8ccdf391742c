package membership

import (
	"testing"
	"time"
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
