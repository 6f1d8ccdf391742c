package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// What a member does for a stream that is quiet, and after a pause.

// probes returns when a member probes its right neighbor.
func probes(t *testing.T, m *Member, until protocol.Time) (at []protocol.Time) {
	t.Helper()
	for now := m.Deadline(); now < until; now = m.Deadline() {
		for _, s := range drain(m, now) {
			if fr, err := parse(s.frame); err == nil && fr.kind == offer && fr.direction == undirected &&
				s.to == m.roster.neighbor(1, true) {
				at = append(at, now)
			}
		}
	}
	return at
}

// A stream that has fallen quiet is probed four times, the first time when it was quiet for a
// while, and then after four times as long each time. If the neighbor has offered as much, it is
// not.
func TestProbesOfAQuietStream(t *testing.T) {
	const now = second
	for _, heard := range []uint64{1, 2} {
		m := group(t, Config{}, 9)[4]
		receiveFrom(t, m, now, 0, 0, 0, 2000)
		const last = now + tailProbeInterval/2
		receiveFrom(t, m, last, 0, 1, 0, 2000)
		answerTo(t, m, last, 5, frame{kind: offer, direction: leftward, first: heard})
		want := []protocol.Time{last + tailProbeInterval}
		for wait := 4 * tailProbeInterval; len(want) < tailProbes; wait *= 4 {
			want = append(want, want[len(want)-1]+wait)
		}
		if heard == 2 {
			want = nil
		}
		if at := probes(t, m, 100*second); !slices.Equal(at, want) {
			t.Errorf("offered %d of 2: probed at %v, want %v", heard, at, want)
		}
	}
}

// Where the tree takes long, a stream counts as quiet after longer.
func TestProbesWaitForASlowTree(t *testing.T) {
	const now = second
	m := group(t, Config{Lead: tailProbeInterval}, 9)[4]
	receiveFrom(t, m, now, 0, 0, 0, 2000)
	if at := probes(t, m, 100*second); len(at) != tailProbes || at[0] != now+m.skew.patience() {
		t.Errorf("probed at %v, want %d at first", at, now+m.skew.patience())
	}
}

// A stream that goes on is probed when it has become quiet again, from the beginning.
func TestProbesStartOver(t *testing.T) {
	m := group(t, Config{}, 9)[4]
	receiveFrom(t, m, second, 0, 0, 0, 2000)
	before := len(probes(t, m, second+5*tailProbeInterval+1))
	now := m.Deadline()
	receiveFrom(t, m, now, 0, 1, 0, 2000)
	if after := probes(t, m, 100*second); before != 2 || len(after) != tailProbes || after[0] != now+tailProbeInterval {
		t.Errorf("%d probes, and then at %v, of %d", before, after, now)
	}
}

// Probes of a stream begin a while after the view, although the stream has been quiet for long.
func TestProbesBeginAfterTheView(t *testing.T) {
	m := group(t, Config{}, 3)[1]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	drain(m, 1)
	f := m.flows[0]
	f.tailProbe.due = protocol.Never
	m.Freeze()
	m.Flush(second, nil)
	if err := m.Install(second, 2, 3, m.roster.members); err != nil {
		t.Fatal(err)
	}
	if f.tailProbe.due != second+tailProbeInterval || f.tailProbe.remaining != tailProbes {
		t.Errorf("%+v", f.tailProbe)
	}
}

// After a pause that is longer than activeFor, a root begins with a small window again: much may
// have changed.
func TestWindowAfterAPause(t *testing.T) {
	const grown = 4 << 20
	for pause, want := range map[protocol.Time]int{activeFor: grown, activeFor + 1: initialWindow} {
		m := group(t, Config{}, 3)[0]
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		m.own.flow.activeAt, m.own.window = 1, grown
		m.windowFull(1 + pause)
		if m.own.window != want {
			t.Errorf("after %d ns, a window of %d", pause, m.own.window)
		}
	}
}

// Active roots are counted when that is due, and not before.
func TestWhenActiveRootsAreCounted(t *testing.T) {
	m := group(t, Config{}, 9)[8]
	m.active, m.activeDue = 7, second
	m.countActive(second - 1)
	if m.active != 7 {
		t.Error("they are counted all the time")
	}
	m.countActive(second)
	if m.active != 0 || m.activeDue != second+activeInterval {
		t.Errorf("%d are active, counted again at %d", m.active, m.activeDue)
	}
}

// However small a share is, there is no credit for nothing new.
func TestNoCreditForNothingNew(t *testing.T) {
	m := group(t, Config{KeepBytes: 1}, 3)[1]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	if f := m.flows[0]; m.creditDue(1, f, 1, 1, 1000) || !m.creditDue(1, f, 0, 1, 1000) {
		t.Error("a credit is due for nothing, or for a segment it is not")
	}
}
