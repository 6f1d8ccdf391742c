package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Boundaries of flow control.

// sentOf counts the frames of a kind that a member sends now.
func sentOf(m *Member, now protocol.Time, k kind) (n int) {
	for _, s := range drain(m, now) {
		if f, err := parse(s.frame); err == nil && f.kind == k {
			n++
		}
	}
	return n
}

// A root fills its window to the last byte, and what may be held for members that do not answer,
// too. A segment that is longer than both is sent alone.
func TestWindowsAreFilled(t *testing.T) {
	const size, weight = 1000, 1000 + headSize + messagesSize + unacceptedSize + segmentCost
	for _, c := range []struct {
		what           string
		keep           int
		window         int
		inFlight, held int // segments of that weight
		sends          bool
	}{
		{"room for one", 1 << 20, 3 * weight, 2, 0, true},
		{"a byte too few", 1 << 20, 3*weight - 1, 2, 0, false},
		{"longer than the window", 1 << 20, weight - 1, 0, 0, true},
		{"longer than all that may be held", 10, 10, 0, 0, true},
		{"room for one beside what is held", 8 * weight, 8 * weight, 0, 8*8 - 1, true},
		{"no room beside what is held", 8*weight - 1, 8 * weight, 0, 8*8 - 1, false},
		{"room for one beside both", 8 * weight, 8 * weight, 1, 8*8 - 2, true},
		{"no room beside both", 8*weight - 1, 8 * weight, 1, 8*8 - 2, false},
	} {
		m := group(t, Config{KeepBytes: c.keep}, 2)[0]
		m.own.window, m.own.inFlight, m.own.held, m.own.flow.activeAt = c.window, c.inFlight*weight, c.held*weight, 1
		if err := m.Write(make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
		if sends := sentOf(m, 1, data) > 0; sends != c.sends || sends == (m.own.blockedSince > 0) {
			t.Errorf("%s: it sends: %t, blocked since %d", c.what, sends, m.own.blockedSince)
		}
	}
}

// What is held for a member that does not answer is kept, also if the last of it is a batch.
func TestWhatIsHeldIsKept(t *testing.T) {
	const keep = 16 << 10
	m := group(t, Config{KeepBytes: keep, SegmentSize: keep, OutboxBytes: 1 << 20}, 3)[0]
	m.setStalled(2, true)
	now := protocol.Time(1)
	send := func(size int) bool {
		if err := m.Write(make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, now)
		for r := protocol.Rank(1); r < 3; r++ { // members that answer have everything
			credit := frame{kind: grantCredit, incarnation: 1, view: 1, live: m.own.flow.next}
			if r == 1 {
				credit.first, credit.live = m.own.flow.next, 0
			}
			_ = m.Receive(now, r, credit.append(nil))
			m.setStalled(2, true)
		}
		drain(m, now)
		return m.own.waiting.Len() == 0
	}
	for send(4096 - headSizeOf(0) - segmentCost) {
		if m.own.held == holdFactor*keep-4096 {
			break
		}
	}
	m.Freeze()
	for range 4 {
		send(maxBatchedMessage - 10)
	}
	m.Thaw()
	m.FlushBatch()
	drain(m, now)
	if m.own.flow.store.low > 0 || !m.own.flow.store.segments.At(m.own.flow.store.segments.Len()-1).batch {
		t.Errorf("%d segments that rank 2 lacks are not kept, of %d bytes", m.own.flow.store.low, m.own.held+m.own.inFlight)
	}
	if err := m.Invariant(); err != nil {
		t.Error(err)
	}
}

// A root polls for credits only while its window is full. Each poll without progress is followed by
// one after twice the time, up to a limit, and a credit that makes progress shortens it again.
func TestPollsForCreditsBackOff(t *testing.T) {
	m := blockedRoot(t)
	at := []protocol.Time{1}
	for now := at[0]; len(at) < 8; now = m.Deadline() {
		if due := m.own.creditDue; now == due {
			at = append(at, now)
		}
		drain(m, now)
		grantTo(t, m, now, 0) // a sign of life
	}
	for i, want := range []protocol.Time{
		minPollInterval, minPollInterval, maxCreditInterval, maxCreditInterval,
		maxCreditInterval,
	} {
		if got := at[i+1] - at[i]; got != want {
			t.Errorf("poll %d follows after %d ms, want %d", i, got/millisecond, want/millisecond)
		}
	}
	grantTo(t, m, at[7], 1)
	if m.own.creditInterval != minPollInterval {
		t.Errorf("after progress, polls are %d ms apart", m.own.creditInterval/millisecond)
	}
	drain(m, at[7])
	grantTo(t, m, at[7], m.own.flow.next)
	for m.own.waiting.Len() > 0 {
		drain(m, at[7])
		grantTo(t, m, at[7], m.own.flow.next)
	}
	drain(m, m.own.creditDue)
	if m.own.creditDue != protocol.Never {
		t.Error("it polls although nothing waits")
	}
}

// A poll for credits is answered at once. It tells a member what it lacks, and then a root waits
// for it.
func TestPollForCreditsTellsWhatIsLacked(t *testing.T) {
	for first, lacks := range map[uint64]bool{1: false, 2: true} {
		m := group(t, Config{}, 3)[1]
		receiveFrom(t, m, 1, 0, 0, 0, 10)
		drain(m, 1)
		f := m.flows[0]
		f.pull.due = protocol.Never
		ask := frame{kind: creditPoll, root: 0, incarnation: 1, first: first, view: 1}
		if err := m.Receive(1, 0, ask.append(nil)); err != nil {
			t.Fatal(err)
		}
		if got := m.TakeAwaited(); got != lacks || m.TakeAwaited() || (f.pull.due != protocol.Never) != lacks {
			t.Errorf("polled for %d, of which 1 is here: awaited %t, pulls at %d", first, got, f.pull.due)
		}
		if n := sentOf(m, 1, grantCredit); n != 1 {
			t.Errorf("polled for %d: %d credits", first, n)
		}
	}
}

// A credit that a full queue refused is granted again when that queue has room, and only then.
func TestRefusedCreditIsRepeated(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	drain(m, 1)
	credits := func(peer protocol.Rank) int {
		m.Writable(1, peer)
		return sentOf(m, 1, grantCredit)
	}
	for _, full := range []bool{false, true} {
		m.sendCredit(m.flows[0], granted{1, 1})
		for to, head, _, ok := m.Next(1); ok; to, head, _, ok = m.Next(1) {
			if full && kind(head[0]) == grantCredit && to == 0 {
				m.SendFailed(1, true)
			}
		}
		want := map[bool]int{true: 1}[full]
		if other, same, again := credits(2), credits(0), credits(0); other != 0 || same != want || again != 0 {
			t.Errorf("refused: %t; %d credits to another, %d to the same, then %d", full, other, same, again)
		}
	}
}

// What was withheld while the inbox was full is granted when there is room, if it is more than was
// granted before.
func TestWithheldCreditsAreGranted(t *testing.T) {
	for _, c := range []struct {
		all, live uint64 // of rank 3, below
		want      int
	}{{0, 0, 0}, {0, 1, 1}, {1, 1, 1}} {
		m := group(t, Config{InboxBytes: 1}, 4)[1]
		f := frame{kind: data, begins: true, root: 0, incarnation: 1, segment: make([]byte, 100)}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
		m.flows[0].credit.from = map[protocol.Rank]granted{3: {c.all, c.live}}
		m.sendCredit(m.flows[0], m.creditPosition(m.flows[0]))
		drain(m, 1)
		if last := m.flows[0].credit.last; last.all > 0 || last.live > 0 || !m.Withholding() || !m.Full() {
			t.Fatalf("granted %v", last)
		}
		m.Deliver(1)
		if n := sentOf(m, 1, grantCredit); n != c.want || m.Withholding() {
			t.Errorf("%+v: %d credits", c, n)
		}
	}
}

// A member that prefers to drop grants what there is no room for. Another one grants what it has
// granted before, and a root is not held up by its own inbox.
func TestCreditOfAFullMember(t *testing.T) {
	for _, c := range []struct {
		drop, full bool
		want       uint64
	}{{false, false, 2}, {true, false, 2}, {false, true, 1}, {true, true, 5}} {
		m := group(t, Config{Drop: c.drop, InboxBytes: 1000}, 3)[2]
		f, err := m.open(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		f.next, f.wanted, f.grantors, f.credit.last = 2, 5, nil, granted{1, 1}
		if c.full {
			m.inbox.bytes = 1001
		}
		if got := m.creditPosition(f); got != (granted{c.want, c.want}) {
			t.Errorf("%+v: %v", c, got)
		}
		m.own.flow.next, m.own.flow.grantors = 3, nil
		if got := m.creditPosition(m.own.flow); got.all != 3 {
			t.Errorf("%+v: of its own stream, %v", c, got)
		}
	}
}

// The credit of a member speaks for those below that answer, and for all.
func TestCreditTellsApartThoseThatAnswer(t *testing.T) {
	m := group(t, Config{}, 8)[0]
	f := m.own.flow
	f.next = 9
	f.credit.from = map[protocol.Rank]granted{f.grantors[0]: {2, 3}, f.grantors[1]: {4, 7}, f.grantors[2]: {5, 5}}
	if got := m.creditPosition(f); got != (granted{2, 3}) {
		t.Errorf("%v", got)
	}
	m.stalled[f.grantors[0]] = true
	if got := m.creditPosition(f); got != (granted{2, 5}) {
		t.Errorf("without the first one, %v", got)
	}
}

// A view asks for credits at once if the window is full: those of the view before do not count.
// Otherwise it makes no work.
func TestNewViewAsksForCreditsIfItIsBlocked(t *testing.T) {
	free := group(t, Config{}, 2)[0]
	for blocked, m := range map[bool]*Member{false: free, true: blockedRoot(t)} {
		grantTo(t, m, 1, 0)
		m.Flush(2, m.Freeze())
		if err := m.Install(2, 2, 2, m.roster.members); err != nil {
			t.Fatal(err)
		}
		if due := m.own.creditDue <= 2; due != blocked {
			t.Errorf("blocked: %t; it asks at %d", blocked, m.own.creditDue)
		}
		if polls := sentOf(m, 2, creditPoll) > 0; polls != blocked {
			t.Errorf("blocked: %t; it polls: %t", blocked, polls)
		}
	}
}

// A credit is late if it takes longer than the base delay by targetDelay, or by half if that is
// more. One that takes exactly as long is not, and the first one never is.
func TestLateCredits(t *testing.T) {
	for _, c := range []struct{ base, most protocol.Time }{
		{10 * millisecond, 10*millisecond + targetDelay},
		{2 * targetDelay, 3 * targetDelay},
		{4 * targetDelay, 6 * targetDelay},
	} {
		m := group(t, Config{}, 2)[0]
		m.own.timed, m.own.timedAt = 1, 1000
		if m.creditLate(1000 + 100*c.most) {
			t.Error("the first credit is late")
		}
		m.own.base.measure(1000, c.base)
		if m.creditLate(1000+c.most) || !m.creditLate(1001+c.most) {
			t.Errorf("with a base delay of %d ms, a credit may not take %d ms, or more", c.base/millisecond, c.most/millisecond)
		}
		m.own.timed = 0
		if m.creditLate(1001 + c.most) {
			t.Error("what is not measured is late")
		}
	}
}

// A member answers polls along the tree: those below that have granted as much are not polled.
func TestOnlyThoseThatOweCreditsArePolled(t *testing.T) {
	m := group(t, Config{}, 8)[0]
	f := m.own.flow
	f.credit.from = map[protocol.Rank]granted{f.grantors[0]: {5, 5}, f.grantors[1]: {4, 9}}
	m.forwardCreditPoll(1, f, 5)
	var polled []protocol.Rank
	for _, s := range drain(m, 1) {
		polled = append(polled, s.to)
	}
	if !slices.Equal(polled, f.grantors[1:]) {
		t.Errorf("%v are polled, of %v", polled, f.grantors)
	}
}
