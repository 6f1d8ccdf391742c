package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Rules for many roots that send at once.

// receiveFrom gives a member a segment of a root, of which so many before it are not
// accepted by all members yet.
func receiveFrom(t *testing.T, m *Member, now protocol.Time, root protocol.Rank, number uint64, unaccepted uint32,
	size int,
) {
	t.Helper()
	f := frame{
		kind: data, begins: true, root: root, incarnation: 1, first: number, unaccepted: unaccepted,
		segment: make([]byte, size),
	}
	if err := m.Receive(now, root, f.append(nil)); err != nil {
		t.Fatal(err)
	}
	for ok := true; ok; _, ok = m.Deliver(now) {
	}
}

// keptOf returns how many bytes a member keeps of roots that have each sent twice as much
// as KeepBytes, all of it accepted by the members that are waited for.
func keptOf(t *testing.T, m *Member, roots protocol.Rank) (kept int) {
	t.Helper()
	const size = 32 << 10
	for number := range uint64(2 * m.config.KeepBytes / size) {
		for r := range roots {
			receiveFrom(t, m, 1, r, number, 0, size)
		}
		drain(m, 1)
	}
	for _, f := range m.flows {
		kept += f.store.bytes
	}
	return kept
}

// Roots share KeepBytes: a member keeps as much of all as of one.
func TestRootsShareWhatIsKept(t *testing.T) {
	const keep = 8 << 20
	for _, roots := range []protocol.Rank{1, 4, 8} {
		kept := keptOf(t, group(t, Config{KeepBytes: keep}, 9)[8], roots)
		if kept < keep*9/10 || kept > keep {
			t.Errorf("%d bytes of %d roots are kept, want about %d", kept, roots, keep)
		}
	}
}

// In a static group, KeepBytes of each root are kept: a member that is cut off is not waited
// for, and nothing else is left for it.
func TestStaticGroupKeepsOfEachRoot(t *testing.T) {
	const keep, roots = 2 << 20, 4
	m, err := New(Config{Rank: roots, Size: roots + 1, Incarnation: 1, KeepBytes: keep})
	if err != nil {
		t.Fatal(err)
	}
	if kept := keptOf(t, m, roots); kept < roots*keep*9/10 || kept > roots*keep {
		t.Errorf("%d bytes of %d roots are kept, want about %d of each", kept, roots, keep)
	}
}

// What some member may lack is kept even beyond the share of its root.
func TestWhatMayBeLackedIsKept(t *testing.T) {
	const keep, size = 8 << 20, 32 << 10
	m := group(t, Config{KeepBytes: keep}, 9)[8]
	const unaccepted = keep / size / 2
	for number := range uint64(2 * keep / size) {
		for r := range protocol.Rank(8) {
			receiveFrom(t, m, 1, r, number, uint32(min(number, unaccepted)), size)
		}
		drain(m, 1)
	}
	f := m.flows[3]
	if lacked := f.next - 1 - unaccepted; f.store.low > lacked {
		t.Errorf("segments from %d on are kept, and a member may lack %d", f.store.low, lacked)
	}
	if f.store.bytes > keep {
		t.Errorf("%d bytes are kept of one root, want at most %d", f.store.bytes, keep)
	}
}

// Roots that begin at the same time share a window as soon as they hear of each other.
func TestRootsThatBeginTogetherShareAtOnce(t *testing.T) {
	m := group(t, Config{}, 9)[8]
	alone := m.share(1, 8<<20)
	for r := range protocol.Rank(7) {
		receiveFrom(t, m, 2, r, 0, 0, 8)
	}
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(m, 2)
	if share := m.share(2, 8<<20); share != alone/8 {
		t.Errorf("one of 8 roots has a share of %d, want %d", share, alone/8)
	}
	if share := m.share(2+activeFor, 8<<20); share != alone {
		t.Errorf("after a pause, a share is %d, want %d", share, alone)
	}
}

// blockedRoot is a root whose window is full, of a group of two.
func blockedRoot(t *testing.T) *Member {
	t.Helper()
	m := group(t, Config{SegmentSize: 16 << 10}, 2)[0]
	for range 2 * initialWindow / (16 << 10) {
		if err := m.Write(make([]byte, 16<<10), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
	}
	if m.own.blockedSince == 0 {
		t.Fatal("the root is not blocked")
	}
	return m
}

// grantTo gives a root a credit of its only other member.
func grantTo(t *testing.T, m *Member, now protocol.Time, position uint64) {
	t.Helper()
	credit := frame{kind: grantCredit, incarnation: 1, view: 1, first: position}
	if err := m.Receive(now, 1, credit.append(nil)); err != nil {
		t.Fatal(err)
	}
}

// A window grows with credits that are in time. Once one takes longer than one before by
// targetDelay, the window is halved, once, and does not grow until that credit is here.
func TestLateCreditHalvesTheWindow(t *testing.T) {
	m := blockedRoot(t)
	const base = 80 * millisecond
	grantTo(t, m, 1+base, 8)
	if m.own.window <= initialWindow {
		t.Fatalf("a window of %d after a credit, want more than %d", m.own.window, initialWindow)
	}
	const grown = 8 << 20
	m.own.window = grown
	drain(m, 1+base) // times the next credit
	late := 2 + base + base + targetDelay
	timed := m.own.timed
	grantTo(t, m, late-2, 9)
	if m.own.window < grown {
		t.Fatalf("a window of %d after a credit that is in time, want %d", m.own.window, grown)
	}
	m.own.window = grown
	for position := uint64(10); position < timed; position++ {
		grantTo(t, m, late, position)
		if m.own.window != grown/2 {
			t.Fatalf("a window of %d after late credits, want half of %d", m.own.window, grown)
		}
	}
	grantTo(t, m, late, timed)
	drain(m, late)
	before := m.own.window
	grantTo(t, m, late+millisecond, timed+1)
	if m.own.window <= before {
		t.Error("the window does not grow again")
	}
}

// The base delay is the least of the last one to two minutes, so that a path that has
// become longer does not close the window for ever.
func TestBaseDelayIsTheLeastOfTheLastMinutes(t *testing.T) {
	var b baseDelay
	if _, known := b.known(); known {
		t.Error("a base delay that was not measured is known")
	}
	at := protocol.Time(1)
	for _, c := range []struct{ after, took, base protocol.Time }{
		{0, 30, 30},
		{1, 20, 20},
		{1, 40, 20},
		{baseInterval, 50, 20},
		{baseInterval - 1, 60, 20},
		{1, 70, 50},
		{1, 10, 10},
	} {
		at += c.after
		b.measure(at, c.took)
		if base, known := b.known(); base != c.base || !known {
			t.Errorf("after %d: a base delay of %d, want %d", c.took, base, c.base)
		}
	}
}

// creditsFor returns how many credits a member grants for two megabytes of one of two
// roots, and how many bytes it has not granted at most. Other members grant as much, or
// nothing.
func creditsFor(t *testing.T, othersGrant bool) (credits, lag int) {
	t.Helper()
	const size = 4 << 10
	m := group(t, Config{}, 4)[3]
	receiveFrom(t, m, 1, 1, 0, 0, size) // the other root
	granted, accepted := uint64(0), uint64(0)
	for number := range uint64(512) {
		receiveFrom(t, m, 1, 0, number, uint32(number-accepted), size)
		for _, f := range drain(m, 1) {
			if fr, err := parse(f.frame); err == nil && fr.kind == grantCredit && fr.root == 0 {
				credits, granted = credits+1, fr.first
			}
		}
		lag = max(lag, int(number+1-granted)*(size+segmentCost))
		if othersGrant {
			accepted = granted
		}
	}
	return credits, lag
}

// A root that has little in flight, because it shares, gets its credits before its window
// is full. One that has much in flight gets fewer.
func TestCreditsComeBeforeASmallWindowIsFull(t *testing.T) {
	few, lag := creditsFor(t, true)
	if lag > minShare/2 {
		t.Errorf("%d bytes are not granted, of a window of %d", lag, minShare)
	}
	if fewer, _ := creditsFor(t, false); fewer > few/2 {
		t.Errorf("%d credits, and %d if little is in flight", fewer, few)
	}
}

// A program that flow control has blocked is still in its burst: its messages go on in
// batches.
func TestBlockedProgramStaysInItsBurst(t *testing.T) {
	m := group(t, Config{}, 2)[0]
	now := protocol.Time(1)
	write := func() {
		if err := m.Write(make([]byte, 64), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, now)
	}
	for m.own.blockedSince == 0 {
		write()
		now += microsecond
	}
	now += 10 * millisecond // long enough to end a burst
	grantTo(t, m, now, m.own.flow.next)
	drain(m, now)
	write()
	if !m.own.burst.batching {
		t.Error("a message after the block is sent alone")
	}
}
