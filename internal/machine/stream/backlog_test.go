package stream_test

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A relay whose child's queue is full for a moment keeps the child's segments in order:
// nothing has to be pulled, and nothing is sent twice.
func TestBacklogOfARelay(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, nil)
	relay, child := n.members[1], n.members[3] // in the tree of root 0
	var sent [][]byte
	send := func(i int) {
		sent = append(sent, message(0, i, 3000))
		n.broadcast(0, sent[i])
		for range 6 {
			n.step()
		}
	}
	send(0)
	n.run(minute)
	before := relay.Stats()
	child.full = true
	for i := 1; i < 8; i++ {
		send(i)
	}
	relay.Up(n.now, 3) // what waited for the connection is still to be sent
	child.full = false
	relay.Writable(n.now, 3)
	n.pump(relay)
	n.run(n.now + minute)
	n.check(map[protocol.Rank][][]byte{0: sent})
	if s := relay.Stats(); s.Repaired != before.Repaired || s.Relayed != before.Relayed+7 {
		t.Errorf("relayed %d and repaired %d, want 7 and none", s.Relayed-before.Relayed, s.Repaired-before.Repaired)
	}
}
