package stream_test

import "testing"

// A frozen child holds back credits, so its lag grows, and it stalls. When it goes on, the
// lag is within what members owe of credits.
func TestPeerStates(t *testing.T) {
	n := newNetwork(t, 2, 1, faults{}, nil)
	root := n.members[0]
	n.freeze(1)
	const messages, bytes = 100, 8 << 10
	for i := range messages {
		n.broadcast(0, message(0, i, bytes))
	}
	n.run(n.now + minute/4)
	s := root.PeerStates()[1]
	if s.Lag != messages || !s.Stalled {
		t.Errorf("frozen: %+v", s)
	}
	n.thaw(1)
	n.run(n.now + minute)
	if after := root.PeerStates()[1]; after.Stalled || after.Lag >= s.Lag || after.Lag*bytes > 256<<10 {
		t.Errorf("thawed: %+v, after %+v", after, s)
	}
	if q := root.Queues(); q.OutboxBytes != 0 {
		t.Errorf("thawed: %+v", q)
	}
}
