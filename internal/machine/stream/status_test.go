package stream_test

import "testing"

// A frozen child holds back credits, so it lags and stalls. When it continues, nothing is late.
func TestPeerStates(t *testing.T) {
	n := newNetwork(t, 2, 1, faults{}, nil)
	root := n.members[0]
	n.freeze(1)
	const messages, bytes = 100, 8 << 10
	for i := range messages {
		n.broadcast(0, message(0, i, bytes))
	}
	n.run(n.now + minute/4)
	s := root.PeerStates(n.now)[1]
	if s.Lag != messages || !s.Stalled {
		t.Errorf("frozen: %+v", s)
	}
	n.thaw(1)
	n.run(n.now + minute)
	if after := root.PeerStates(n.now + minute)[1]; after.Stalled || after.Lag > 0 {
		t.Errorf("thawed: %+v, after %+v", after, s)
	}
	if q := root.Queues(); q.OutboxBytes != 0 {
		t.Errorf("thawed: %+v", q)
	}
}

// Case 72: segments that members have received and not granted a credit for, because they are
// few, are no lag.
func TestFewSegmentsAreNoLag(t *testing.T) {
	n := newNetwork(t, 9, 1, faults{}, nil)
	for i := range 100 {
		n.broadcast(0, message(0, i, 10))
	}
	for range 20 {
		n.run(n.now + minute/60)
		for r, s := range n.members[0].PeerStates(n.now) {
			if s.Lag > 0 {
				t.Fatalf("rank %d lags %d segments", r, s.Lag)
			}
		}
	}
}
