package detect

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A view change costs a detector what has changed, however many peers it watches.
func TestWatchAllocatesLittle(t *testing.T) {
	c := NewConnections(ConnectionsConfig{})
	d := All(c, NewTracker())
	t.Cleanup(func() { d.Close() })
	var peers []Peer
	for r := range protocol.Rank(1000) {
		peers = append(peers, Peer{Rank: r, Incarnation: 1, Address: "peer:1"})
	}
	d.Watch(PeerList(peers))
	for r := range protocol.Rank(10) {
		c.Up(r, 1)
	}
	views := make([]Peers, 30)
	for i := range views {
		views[i] = PeerList(peers[i:])
	}
	view := 0
	if n := testing.AllocsPerRun(20, func() {
		view++
		d.Watch(views[view])
	}); n > 20 { // of iterators and functions
		t.Errorf("%v allocations for a view with 1 change of 1000", n)
	}
}

// Peers in any order are found.
func TestWatchSorts(t *testing.T) {
	tr := NewTracker()
	tr.Watch(PeerList([]Peer{{Rank: 3, Incarnation: 1}, {Rank: 1, Incarnation: 2}}))
	for rank, want := range map[protocol.Rank]uint64{1: 2, 3: 1, 2: 0} {
		if p, ok := tr.Watched(rank); p.Incarnation != want || ok != (want > 0) {
			t.Errorf("rank %d: %+v, %v", rank, p, ok)
		}
	}
}
