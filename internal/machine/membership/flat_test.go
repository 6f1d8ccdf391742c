package membership

import (
	"testing"
	"time"
)

// In a small group a change takes five frames for each survivor but the coordinator,
// one of each kind and nothing else: no relay wakes for another's acknowledgment, and
// nothing is corrected. The one commit more tells who was removed, in case it lives.
func TestFlatChangeTakesFiveFramesEach(t *testing.T) {
	const size = 47
	n := newNetwork(t, size, 1, nil)
	n.kill(20)
	n.suspect(n.hosts[0], n.hosts[20].self)
	n.pump(n.hosts[0])
	n.settle()
	n.run(500*time.Millisecond, nil) // whatever is delayed
	want := [Kinds]int{Prepare: size - 2, Promise: size - 2, Propose: size - 2, Accept: size - 2, Commit: size - 1}
	if n.frames != want {
		t.Errorf("got %v, want %v", n.frames, want)
	}
}

// A commit that gets lost is asked for: any member that waits for it knows that it does.
func TestLostCommitIsAskedFor(t *testing.T) {
	n := newNetwork(t, 9, 1, nil)
	began, unlucky, lost := n.now, n.hosts[5], 0
	n.blocked = func(_, to *host) bool {
		cut := to == unlucky && unlucky.m.acceptor.accepted != Ballot{} && n.now < began+20*millisecond
		if cut {
			lost++
		}
		return cut
	}
	n.kill(8)
	n.suspect(n.hosts[0], n.hosts[8].self)
	n.pump(n.hosts[0])
	v := n.settle()
	if took := n.now - began; lost != 1 || v.Number != 2 || took > 2*unlucky.m.config.RetryInterval {
		t.Errorf("%d lost, %v after %d ns", lost, v, took)
	}
}
