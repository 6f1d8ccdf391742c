package stream_test

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// measured is what a root has measured of its propagation delay.
func measured(h *host) stream.Propagation { return h.Stats().Propagation }

// receipt polls for everything that a root has sent, and returns when it was stable.
func (n *network) receipt(root *host) protocol.Time {
	n.t.Helper()
	upTo := root.Poll(n.now)
	n.pump(root)
	n.until(func() bool { return root.Stable() >= upTo })
	return n.now
}

// The delay that a root measures is the time from when its message was accepted until its
// receipt is complete, also if a member is unresponsive meanwhile. Nothing is sent for it: the
// frames of the golden traces are those of before.
func TestPropagationIsMeasuredUntilTheReceipt(t *testing.T) {
	const latency = 200 * time.Microsecond
	for _, c := range []struct {
		size   int
		frozen time.Duration // how long the last member is unresponsive
	}{{2, 0}, {8, 0}, {8, 2 * time.Second}} {
		n := newNetwork(t, c.size, 1, faults{latency: latency}, nil)
		root, last := n.members[0], protocol.Rank(c.size-1)
		if c.frozen > 0 {
			n.freeze(last)
			n.add(event{at: n.now + protocol.Time(c.frozen), to: 0})
		}
		began := n.now
		n.broadcast(0, message(0, 0, 100))
		upTo := root.Poll(n.now)
		n.pump(root)
		if c.frozen > 0 {
			n.until(func() bool { return n.now >= began+protocol.Time(c.frozen) })
			n.thaw(last)
		}
		n.until(func() bool { return root.Stable() >= upTo })
		p, took := measured(root), n.now-began
		if p.Count != 1 || p.Last != took || p.Sum != took || p.Max != took {
			t.Errorf("%d members: %+v, want one of %v", c.size, p, time.Duration(took))
		}
		if least := protocol.Time(max(2*latency, c.frozen)); took < least {
			t.Errorf("%d members: stable after %v, less than %v", c.size, time.Duration(took), time.Duration(least))
		}
		bounds := stream.PropagationBounds()
		for i, bound := range bounds {
			in := took <= bound && (i == 0 || took > bounds[i-1])
			if got := p.Buckets[i]; got != 0 != in {
				t.Errorf("%d members, %v: %d up to %v", c.size, time.Duration(took), got, time.Duration(bound))
			}
		}
	}
}

// A receipt that the program waits for long after the message says nothing about how long the
// message took, and is not counted.
func TestLateReceiptsAreNotMeasured(t *testing.T) {
	n := newNetwork(t, 8, 1, faults{}, nil)
	root := n.members[0]
	n.broadcast(0, message(0, 0, 100))
	n.run(n.now + minute)
	n.receipt(root)
	if p := measured(root); p.Count != 0 {
		t.Errorf("counted: %+v", p)
	}
	began := n.now
	n.broadcast(0, message(0, 1, 100))
	if took := n.receipt(root) - began; measured(root).Count != 1 || measured(root).Last != took {
		t.Errorf("after that: %+v, want one of %v", measured(root), time.Duration(took))
	}
}

// One message is timed at once. While its receipt is due, later polls do not delay the measurement, and
// their messages are not timed.
func TestOneMessageIsTimedAtOnce(t *testing.T) {
	n := newNetwork(t, 8, 1, faults{latency: time.Millisecond}, nil)
	root, began := n.members[0], n.now
	n.freeze(7)
	const messages = 20
	for i := range messages {
		at := began + protocol.Time(i)*protocol.Time(100*time.Millisecond)
		n.add(event{at: at, to: 0})
		n.until(func() bool { return n.now >= at })
		n.broadcast(0, message(0, i, 100))
		root.Poll(n.now)
		n.pump(root)
	}
	n.thaw(7)
	n.receipt(root)
	p, took := measured(root), n.now-began
	if p.Count != 1 || p.Last > took || p.Last < took-protocol.Time(100*time.Millisecond) {
		t.Errorf("%d messages in %v: %+v, want one that took as long", messages, time.Duration(took), p)
	}
}

// A member that has lost a part of the stream is in no receipt until it is removed, and that is
// not measured.
func TestLossIsNotMeasuredAsPropagation(t *testing.T) {
	n := newNetwork(t, 3, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 40 << 10 })
	root := n.members[0]
	n.members[2].dead = true
	for i := range 200 {
		n.broadcast(0, message(0, i, 2000))
		for range 60 {
			n.step()
		}
	}
	n.members[2].dead = false
	for _, h := range n.members {
		h.Up(n.now, 2)
		n.pump(h)
	}
	n.run(n.now + minute)
	n.broadcast(0, message(0, 200, 100))
	root.Poll(n.now)
	n.pump(root)
	n.until(func() bool { return len(root.Incomplete()) > 0 })
	n.members[2].dead = true
	n.changeView(2, []protocol.Rank{0, 1})
	n.run(n.now + minute)
	if p := measured(root); p.Count != 0 {
		t.Errorf("counted: %+v", p)
	}
	n.broadcast(0, message(0, 201, 100))
	n.receipt(root)
	if p := measured(root); p.Count != 1 {
		t.Errorf("after that: %+v, want one", p)
	}
}

// A group of one has no delay.
func TestPropagationOfOneIsNotMeasured(t *testing.T) {
	n := newNetwork(t, 1, 1, faults{}, nil)
	n.broadcast(0, message(0, 0, 100))
	n.receipt(n.members[0])
	if p := measured(n.members[0]); p.Count != 0 {
		t.Errorf("counted: %+v", p)
	}
}
