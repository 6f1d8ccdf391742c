package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// What becomes of segments that arrive by another way than the tree, or that there is no room for.

// A segment that was pulled is not forwarded. It is when the tree brings it, too, once.
func TestPulledSegmentIsForwardedWhenTheTreeBringsIt(t *testing.T) {
	m := group(t, Config{}, 4)[1] // rank 3 is below
	for _, c := range []struct {
		kind kind
		from protocol.Rank
		want int
	}{{repair, 2, 0}, {data, 2, 0}, {data, 0, 1}, {data, 0, 0}} {
		answerTo(t, m, 1, c.from, frame{kind: c.kind, begins: true, segment: []byte("message")})
		if n := sentOf(m, 1, data); n != c.want {
			t.Errorf("kind %d of rank %d: forwarded to %d", c.kind, c.from, n)
		}
	}
	if s := m.Stats(); s.Duplicates != 3 || s.Relayed != 1 {
		t.Errorf("%+v", s)
	}
}

// When all that was requested has come, the rest is requested at once. A hole shows by what comes
// behind it.
func TestHolesArePulled(t *testing.T) {
	m, f := behind(t, 20)
	now := f.pull.due
	requests(m, now)
	for number := range f.pull.requestedTo {
		repaired(t, m, now, 5, number)
	}
	if n := requests(m, now); n != 1 || f.pull.requestedTo <= f.next {
		t.Errorf("%d requests for the rest", n)
	}
	m, f = behind(t, 0)
	receiveFrom(t, m, 1, 0, 1, 0, 10)
	if f.pull.due != 1+m.skew.lead() || !slices.Equal(f.pull.sources, []protocol.Rank{0}) {
		t.Errorf("a hole: %+v", f.pull)
	}
}

// A stream that is refused from its first segment on is pulled when there is room. A member that
// prefers to drop grants what it refuses.
func TestRefusedStreams(t *testing.T) {
	for _, drops := range []bool{false, true} {
		m := group(t, Config{InboxBytes: 1000, Drop: drops}, 4)[1]
		for number := range uint64(3) {
			answerTo(t, m, 1, 2, frame{kind: data, root: 2, begins: true, first: number, segment: make([]byte, 1000)})
		}
		if drops {
			m.flows[2].store.segments.At(0).body = make([]byte, 1000)
		}
		for number := range uint64(400) {
			answerTo(t, m, 1, 2, frame{kind: data, root: 2, begins: true, first: 3 + number, segment: make([]byte, 1000)})
		}
		answerTo(t, m, 1, 0, frame{kind: data, begins: true, segment: make([]byte, 1000)})
		if m.flows[0].next > 0 || m.Stats().Refused < 300 {
			t.Fatalf("drops %t: %d segments are refused", drops, m.Stats().Refused)
		}
		granted := uint64(0)
		for _, s := range drain(m, 1) {
			if f, _ := parse(s.frame); f.kind == grantCredit && f.root == 2 {
				granted = max(granted, f.first, f.live)
			}
		}
		if (granted > 200) != drops {
			t.Errorf("drops %t: it grants %d segments", drops, granted)
		}
		for m.Pending() > 0 {
			m.Deliver(2)
		}
		if f := m.flows[0]; f.pull.due > 2+m.skew.lead() || !f.scheduled ||
			!slices.Equal(f.pull.sources, []protocol.Rank{0}) {
			t.Errorf("drops %t: a stream that was refused is pulled at %d", drops, f.pull.due)
		}
	}
}
