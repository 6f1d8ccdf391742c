package stream

import (
	"cmp"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// When corrections begin, how long they wait, and what they learn from that.

// correcting is a member whose correction of one segment of root 0 runs, and has begun at a time.
func correcting(t *testing.T) (m *Member, f *flow, began protocol.Time) {
	t.Helper()
	m, f = middle(t)
	for !f.correction.running {
		drain(m, m.Deadline())
	}
	return m, f, f.correction.began
}

// What a correction learns from an offer of a member on its right: how long neighbors take, if the
// nearest one was not asked; that it waits for too short a time, if that was asked and lives; that
// the question was needed, if another one answers.
func TestWhatACorrectionLearns(t *testing.T) {
	for _, c := range []struct {
		what  string
		asked int
		dense bool
		from  protocol.Rank
		first uint64
		learn string
	}{
		{"unasked", 0, false, 5, 1, "delay"},
		{"unasked, of more", 0, false, 5, 2, "delay"},
		{"unasked, and postponed", 0, true, 5, 1, "nothing"},
		{"asked", 1, false, 5, 1, "back off"},
		{"asked, and postponed", 1, true, 5, 1, "back off"},
		{"asked another one", 2, false, 6, 1, "refund"},
		{"of too little", 0, false, 5, 0, "ignored"},
	} {
		m, f, began := correcting(t)
		f.correction.rightwardOffers, f.correction.dense = c.asked, c.dense
		m.budget.spent = 20
		before := m.delay
		heard := f.correction.heardTo
		m.handleLeftward(began+2*millisecond, f, c.from, c.first)
		learnt := "nothing"
		switch {
		case f.correction.running:
			learnt = "ignored"
		case m.budget.spent == 0:
			learnt = "refund"
		case m.delay.wait == 2*before.wait && m.delay.mean == before.mean:
			learnt = "back off"
		case m.delay.mean == 2*millisecond:
			learnt = "delay"
		}
		if learnt != c.learn {
			t.Errorf("%s: %s, want %s", c.what, learnt, c.learn)
		}
		if want := map[bool]uint64{true: c.first, false: heard}[c.from == 5]; f.correction.heardTo != want {
			t.Errorf("%s: heard up to %d", c.what, f.correction.heardTo)
		}
	}
}

// What arrives while a correction runs has the next one.
func TestNextCorrectionFollows(t *testing.T) {
	for _, more := range []bool{true, false} {
		m, f, began := correcting(t)
		if more {
			receiveFrom(t, m, began, 0, 1, 0, 10)
		}
		m.handleLeftward(began+millisecond, f, 5, 2)
		if due := f.correction.due; f.correction.running || (due == began+m.skew.interval()) != more || !more &&
			due != protocol.Never {
			t.Errorf("more has arrived: %t; the next correction is due %d µs after the last", more, (due-began)/microsecond)
		}
		drain(m, began+millisecond)
		if more && !slices.Contains(offeredTo(m, f.correction.due), 3) {
			t.Error("the next correction makes no offer to the left")
		}
	}
}

// A correction of what the right neighbor has offered already asks nothing, earns a part of a
// question, and lets the wait sink slowly.
func TestCorrectionOfWhatTheNeighborHas(t *testing.T) {
	for heard, ends := range map[uint64]bool{0: false, 1: true, 2: true} {
		m, f := middle(t)
		m.budget.spent, f.correction.heardTo = 9, heard
		before := m.delay.wait
		for f.correction.upTo == 0 {
			drain(m, m.Deadline())
		}
		if f.correction.running == ends || m.budget.spent != 8 || (m.delay.wait == before-before/decay) != ends {
			t.Errorf("heard of %d: it runs: %t, waits for %d µs, has spent %d", heard, f.correction.running,
				m.delay.wait/microsecond, m.budget.spent)
		}
	}
}

// The wait is the mean of what neighbors took plus four times its deviation, within bounds. It
// follows changes, and doubles when a neighbor was only late.
func TestWaitFollowsWhatNeighborsTake(t *testing.T) {
	m := group(t, Config{}, 4)[0]
	near := func(what string, want protocol.Time) {
		t.Helper()
		if got := m.delay.wait; got < want*95/100 || got > want*105/100 {
			t.Errorf("%s: waits for %d µs, want %d", what, got/microsecond, want/microsecond)
		}
	}
	m.measureDelay(4 * millisecond)
	near("the first time", 4*millisecond+4*(2*millisecond-2*millisecond/4))
	for range 100 {
		m.measureDelay(4 * millisecond)
	}
	near("always the same", 4*millisecond)
	m.measureDelay(12 * millisecond)
	near("one is late", 5*millisecond+8*millisecond)
	for range 100 {
		m.measureDelay(4 * millisecond)
	}
	m.measureDelay(2 * millisecond)
	near("one is early", 4*millisecond-millisecond/4+2*millisecond)
	m.backOff()
	near("it was only late", 2*(4*millisecond-millisecond/4+2*millisecond))
	for range 20 {
		m.backOff()
	}
	near("late again and again", maxWait)
	if m.Stats().Delay != m.delay.wait {
		t.Error("people see another delay")
	}
	for range 600 {
		m.decayDelay()
	}
	near("nothing to measure for long", minWait)
	if planned := m.delay.planned; planned > m.delay.wait*4/3+1 || planned < m.delay.wait*3/4 {
		t.Errorf("corrections are planned with %d µs, and wait for %d", planned/microsecond, m.delay.wait/microsecond)
	}
}

// A neighbor that was asked has a few leads to answer, the next one twice as long, up to a limit.
func TestNeighborsHaveTimeToAnswer(t *testing.T) {
	m, f := middle(t)
	for asked, want := range []protocol.Time{4 * m.skew.lead(), 8 * m.skew.lead(), 16 * m.skew.lead()} {
		if got := m.passOver(asked); got != want {
			t.Errorf("after %d questions: %d µs", asked, got/microsecond)
		}
	}
	if m.passOver(16) != maxWait || m.passOver(1000) != maxWait {
		t.Error("there is no limit")
	}
	m.skew.mean, m.skew.fixed = 0, 1
	if m.passOver(0) != minPassOver {
		t.Errorf("%d µs at least", m.passOver(0)/microsecond)
	}
	m.skew.fixed = 0
	m.skew.mean = initialSkew
	for f.correction.rightwardOffers < 2 {
		now := m.Deadline()
		spent, asked := m.budget.spent, f.correction.rightwardOffers
		drain(m, now)
		if f.correction.rightwardOffers > asked && (f.correction.due != now+m.passOver(asked) ||
			m.budget.spent != spent+questionCost) {
			t.Errorf("question %d: the next one after %d µs, %d spent", asked, (f.correction.due-now)/microsecond,
				m.budget.spent-spent)
		}
	}
}

// The skew is measured by the ages that the right neighbor's offers tell, whichever of the two was
// first: now, or when the tree brings what it has offered. Other members' offers tell nothing.
func TestSkewIsMeasured(t *testing.T) {
	const now, age = 1000 * millisecond, 20_000 // microseconds
	for _, c := range []struct {
		what     string
		from     protocol.Rank
		first    uint64 // segments that are offered, of which one is here since a time
		arrived  protocol.Time
		unaged   bool
		treeAt   protocol.Time // when the second one arrives; 0: never
		by       kind          // if zero, the tree brings it
		sender   protocol.Rank // if zero, the parent
		measured protocol.Time // how far apart the two are
	}{
		{what: "here later", from: 5, first: 1, arrived: now - 5*millisecond, measured: 15 * millisecond},
		{what: "here earlier", from: 5, first: 1, arrived: now - 30*millisecond, measured: 10 * millisecond},
		{what: "another member", from: 6, first: 1, arrived: now - 5*millisecond},
		{what: "no age", from: 5, first: 1, arrived: now - 5*millisecond, unaged: true},
		{what: "of what was here before", from: 5, first: 0, arrived: now - 5*millisecond},
		{what: "of more", from: 5, first: 2, arrived: now - 5*millisecond},
		{
			what: "of more, which the tree brings", from: 5, first: 2, arrived: now - 5*millisecond, treeAt: now + 4*millisecond,
			measured: 24 * millisecond,
		},
		{
			what: "of more, which is pulled", from: 5, first: 2, arrived: now - 5*millisecond, treeAt: now + 4*millisecond,
			by: repair,
		},
		{
			what: "of more, which another one brings", from: 5, first: 2, arrived: now - 5*millisecond,
			treeAt: now + 4*millisecond, sender: 7,
		},
		{what: "of much more", from: 5, first: 3, arrived: now - 5*millisecond, treeAt: now + 4*millisecond},
	} {
		m, f := behind(t, 0)
		segment := func(at protocol.Time, number uint64, by kind, sender protocol.Rank) {
			fr := frame{kind: cmp.Or(by, data), begins: true, incarnation: 1, first: number}
			if err := m.Receive(at, cmp.Or(sender, f.parent), fr.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		segment(c.arrived, 0, 0, 0)
		before := m.skew
		fr := frame{kind: offer, incarnation: 1, first: c.first, direction: leftward, aged: !c.unaged, age: age, skew: 700}
		if err := m.Receive(now, c.from, fr.append(nil)); err != nil {
			t.Fatal(err)
		}
		if near := m.skew.near == 700*microsecond; near != (c.from == 5 && !c.unaged) {
			t.Errorf("%s: the neighbor's own skew counts: %t", c.what, near)
		}
		if c.treeAt > 0 {
			segment(c.treeAt, 1, c.by, c.sender)
			segment(c.treeAt, 1, c.by, c.sender) // twice measures nothing more
		}
		want := before
		want.near = m.skew.near
		if c.measured > 0 {
			want.measure(0, c.measured)
		}
		if m.skew != want {
			t.Errorf("%s: %+v, want %+v", c.what, m.skew, want)
		}
	}
}

// What is here already, and came in another order than it was sent, is no measurement when the
// tree brings it once more.
func TestSkewOfWhatCameInAnotherOrder(t *testing.T) {
	m, f := behind(t, 0)
	for _, number := range []uint64{1, 0} {
		answerTo(t, m, 1, f.parent, frame{kind: data, begins: true, first: number})
	}
	before := m.skew
	answerTo(t, m, 20*millisecond, 5, frame{kind: offer, first: 2, direction: leftward, aged: true, age: 1})
	answerTo(t, m, 50*millisecond, f.parent, frame{kind: data, begins: true, first: 1})
	if m.skew.mean != before.mean || m.skew.above != before.above {
		t.Errorf("%+v, before %+v", m.skew, before)
	}
}

// An offer to the left neighbor tells its age and the skew. It
// carries the last segment if that is small, and says so for the neighbor alone.
func TestWhatAnOfferTells(t *testing.T) {
	for _, c := range []struct {
		what         string
		size, inline int
		to           protocol.Rank
		toward       direction
		aged         bool
	}{
		{"to the left", 10, 10, 3, leftward, true},
		{"too long to carry along", 10, 9, 3, leftward, true},
		{"to another one", 10, 10, 2, leftward, false},
		{"undirected", 10, 10, 3, undirected, false},
	} {
		m := group(t, Config{InlineSize: c.inline}, 9)[4]
		receiveFrom(t, m, 1, 0, 0, 0, c.size)
		drain(m, 1)
		f := m.flows[0]
		m.offer(2001, c.to, f, c.toward)
		sent := drain(m, 1)[0]
		got, err := parse(sent.frame)
		if err != nil || got.first != 1 || got.direction != c.toward || got.inline != (c.size <= c.inline) ||
			len(got.segment) != map[bool]int{true: c.size}[got.inline] {
			t.Errorf("%s: %v, %+v", c.what, err, got)
		}
		if got.aged != c.aged || c.aged && (got.age != 2 || got.skew != uint32(m.skew.apart()/microsecond)) {
			t.Errorf("%s: aged %t, %d µs, skew %d µs", c.what, got.aged, got.age, got.skew)
		}
		if told := f.correction.toldTo == 1; told != (c.to == 3 && c.toward == leftward) {
			t.Errorf("%s: the left neighbor knows: %t", c.what, told)
		}
	}
}

// A correction begins a lead after its first segment, and an interval after the one before, which
// has postponed it then.
func TestCorrectionsKeepTheirDistance(t *testing.T) {
	m, f := behind(t, 0)
	c := &f.correction
	const now = 1000 * millisecond
	lead, interval := m.skew.lead(), m.skew.interval()
	for _, d := range []struct {
		began, due protocol.Time
		dense      bool
	}{
		{now + lead - interval - 1, now + lead, false},
		{now + lead - interval, now + lead, false},
		{now + lead - interval + 1, now + lead + 1, true},
	} {
		*c = correction{began: d.began, due: protocol.Never, yielded: 5}
		f.next++
		m.scheduleCorrection(now, f)
		if c.due != d.due || c.dense != d.dense || c.yielded != 0 {
			t.Errorf("the one before began %d ns ago: %+v", now-d.began, c)
		}
	}
	*c = correction{since: now - 10*lead, due: protocol.Never} // it has waited for another one to end
	m.scheduleCorrection(now, f)
	if c.due != now {
		t.Errorf("one that is late begins %d ns later", c.due-now)
	}
}

// A question to the right that cannot be sent is passed over at once.
func TestQuestionThatFailsIsPassedOver(t *testing.T) {
	m, f := middle(t)
	for now := m.Deadline(); ; now = m.Deadline() {
		for to, head, body, ok := m.Next(now); ok; to, head, body, ok = m.Next(now) {
			fr, _ := parse(slices.Concat(head, body))
			if fr.kind != offer || fr.direction != rightward || to != 5 {
				continue
			}
			m.SendFailed(now, false)
			if f.correction.due != now {
				t.Errorf("after %d µs", (f.correction.due-now)/microsecond)
			}
			if got := offeredTo(m, now); !slices.Equal(got, []protocol.Rank{6}) {
				t.Errorf("%v are asked next", got)
			}
			return
		}
	}
}
