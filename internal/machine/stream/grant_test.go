package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// When members grant credits, and poll for them.

// Polls to one member follow its answers: the next one after twice the time that an answer takes,
// and later each time while there is none.
func TestPacingOfCreditPolls(t *testing.T) {
	var p creditPolls
	now := protocol.Time(1000 * millisecond)
	p.answered(now)
	if p.pending != 0 || !p.due(now) || p.stalled(now+stallTimeout, stallTimeout) {
		t.Errorf("before the first poll: %+v", p)
	}
	wait := minPollInterval
	for i := range 4 { // without an answer
		p.sent(now)
		if p.pending != i+1 || p.due(now+wait-1) || !p.due(now+wait) || p.since != 1000*millisecond {
			t.Errorf("poll %d: %+v", i, p)
		}
		now += wait
		wait *= 2
	}
	since := protocol.Time(1000 * millisecond)
	if p.stalled(since+stallTimeout-1, stallTimeout) || !p.stalled(since+stallTimeout, stallTimeout) {
		t.Error("a member that has not answered for stallTimeout is stalled, and no other one")
	}
	for range 4 {
		now += millisecond
		p.answered(now)
		if p.since != now || !p.heard {
			t.Errorf("%+v", p)
		}
	}
	if took := minPollInterval; p.took != took || p.wait != 2*took || p.pending != 0 {
		t.Errorf("a late answer: %+v", p)
	}
	p.sent(now)
	now += 10 * millisecond
	p.answered(now)
	if p.took != 10*millisecond || p.wait != 20*millisecond {
		t.Errorf("an answer in time: %+v", p)
	}
	p = creditPolls{took: 60 * millisecond, wait: 120 * millisecond}
	p.sent(now)
	if p.stalled(now+120*millisecond-1, silentTimeout) || !p.stalled(now+120*millisecond, silentTimeout) {
		t.Error("a member that is slow has twice the time that it takes")
	}
	p.sent(now + 200*millisecond)
	p.answered(now + 210*millisecond)
	p.sent(now + 300*millisecond)
	if p.wait != 240*millisecond {
		t.Errorf("there was an answer after the last poll: the next one after %d ms", p.wait/millisecond)
	}
}

// A member that leaves polls unanswered is stalled: in a view soon, and in a static group later.
func TestSilentMembersAreStalled(t *testing.T) {
	for view, timeout := range map[uint64]protocol.Time{0: stallTimeout, 1: silentTimeout} {
		m := group(t, Config{}, 3)[0]
		m.view = view
		f := m.own.flow
		m.pollForCredit(1, f, 1, 5)
		m.pollForCredit(2, f, 1, 5)
		if n := sentOf(m, 2, creditPoll); n != 1 {
			t.Errorf("%d polls at once", n)
		}
		m.pollForCredit(timeout, f, 1, 5)
		if m.stalled[1] {
			t.Errorf("view %d: stalled too early", view)
		}
		m.pollForCredit(1+timeout, f, 1, 5)
		if !m.stalled[1] {
			t.Errorf("view %d: not stalled", view)
		}
		grantTo(t, m, 1+timeout, 0)
		if m.stalled[1] {
			t.Errorf("view %d: stalled although it answers", view)
		}
	}
}

// A credit is due for so many bytes, for a part of the share of each root, and, where several roots
// are active, for a part of what is in flight.
func TestWhenACreditIsDue(t *testing.T) {
	for _, c := range []struct {
		what           string
		size, segments int // kept, of which so many are not granted
		position       uint64
		active         int
		inFlight       uint64
		keep           int
		due            bool
	}{
		{"nothing new", 1000, 10, 0, 1, 10, 16 << 20, false},
		{"many bytes", 1000, 200, 132, 1, 200, 16 << 20, true},
		{"a byte too few", 1000, 200, 131, 1, 200, 16 << 20, false},
		{"a part of a small share", 1000, 100, 32, 1, 100, 32 * 24 * 1000 / 3 * 4, true},
		{"less than a part of it", 1000, 100, 31, 1, 100, 32 * 24 * 1000 / 3 * 4, false},
		{"a quarter of what is in flight", 1024, 100, 32, 2, 128, 16 << 20, true},
		{"less than a quarter of it", 1024, 100, 32, 2, 132, 16 << 20, false},
		{"a quarter of next to nothing", 1024, 100, 31, 2, 10, 16 << 20, false},
		{"one root alone", 1024, 100, 32, 1, 128, 16 << 20, false},
	} {
		m, f := behind(t, 0)
		m.config.KeepBytes = c.keep
		for range c.segments {
			f.store.add(&segment{frame: make([]byte, c.size-segmentCost)})
		}
		f.wanted, m.active, m.activeDue = c.inFlight, c.active, 1<<60
		if got := m.creditDue(1, f, 0, c.position, 132_000); got != c.due {
			t.Errorf("%s: due %t", c.what, got)
		}
	}
	m, f := behind(t, 0)
	if m.creditDue(1, f, 0, 5, 0) {
		t.Error("a credit for a stream of which nothing is kept")
	}
}

// A member passes on what those below have granted, also if only those that do not answer have
// caught up, or only the others.
func TestCreditsAreRelayed(t *testing.T) {
	for _, c := range []struct {
		what   string
		last   granted
		before granted // of rank 3, below
		credit frame
		want   granted
	}{
		{"both", granted{}, granted{}, frame{first: 100}, granted{100, 100}},
		{"too little", granted{}, granted{}, frame{first: 10}, granted{}},
		{"those that answer", granted{}, granted{}, frame{first: 0, live: 100}, granted{0, 100}},
		{"all, later", granted{0, 100}, granted{0, 100}, frame{first: 100}, granted{100, 100}},
		{"an old one", granted{100, 100}, granted{100, 100}, frame{first: 10}, granted{}},
	} {
		m := group(t, Config{}, 4)[1]
		for number := range uint64(100) {
			receiveFrom(t, m, 1, 0, number, 0, 1000)
		}
		drain(m, 1)
		f := m.flows[0]
		f.credit.last, f.credit.from = c.last, map[protocol.Rank]granted{3: c.before}
		c.credit.kind = grantCredit
		answerTo(t, m, 1, 3, c.credit)
		var got granted
		for _, s := range drain(m, 1) {
			if fr, _ := parse(s.frame); fr.kind == grantCredit && s.to == 0 {
				got = granted{fr.first, max(fr.first, fr.live)}
			}
		}
		if got != c.want {
			t.Errorf("%s: grants %v, want %v", c.what, got, c.want)
		}
	}
}

// A segment that arrives along the tree is granted to its sender. A repair does not change that.
func TestCreditsGoToTheSender(t *testing.T) {
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	repaired(t, m, 1, 7, 1)
	if f.credit.to != 0 {
		t.Errorf("granted to %d", f.credit.to)
	}
	fr := frame{kind: data, begins: true, incarnation: 1, first: 2}
	if err := m.Receive(1, 6, fr.append(nil)); err != nil || f.credit.to != 6 {
		t.Errorf("%v, granted to %d", err, f.credit.to)
	}
	m.sendCredit(m.own.flow, granted{1, 1})
	for _, s := range drain(m, 1) {
		if s.to < 0 || s.to == 4 {
			t.Errorf("a frame to %d", s.to)
		}
	}
}

// What was granted before a view is granted again in it, from where it begins: other members are
// below. A root's own measurements begin anew.
func TestCreditsOfANewView(t *testing.T) {
	m := group(t, Config{}, 3)[1]
	for number := range uint64(5) {
		receiveFrom(t, m, 1, 0, number, 0, 10)
	}
	f := m.flows[0]
	f.credit.last = granted{4, 5}
	m.own.timed, m.own.halved = 1, true
	m.own.base.measure(1, 5)
	m.Freeze()
	m.Flush(1, []Position{{MemberID{0, 1}, 3, 0}})
	if err := m.Install(1, 2, 3, m.roster.members); err != nil {
		t.Fatal(err)
	}
	if f.credit.last != (granted{3, 3}) || f.credit.from != nil || m.own.timed != 0 || m.own.halved ||
		m.own.base != (baseDelay{}) {
		t.Errorf("granted %v, timed %d", f.credit.last, m.own.timed)
	}
	if m.own.flow.credit.last != (granted{}) {
		t.Errorf("of its own stream, %v", m.own.flow.credit.last)
	}
}

// A root that pauses begins with the first window again, unless it was blocked all the while. A root
// counts as active for a time.
func TestPausesOfRoots(t *testing.T) {
	for _, c := range []struct {
		blocked, active protocol.Time
		want            int
	}{
		{0, 1, initialWindow},
		{0, 1000 * millisecond, 5 * initialWindow},
		{1, 1, 5 * initialWindow},
	} {
		m := group(t, Config{}, 2)[0]
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		const now = 1001 * millisecond
		m.own.window, m.own.blockedSince, m.own.flow.activeAt = 5*initialWindow, c.blocked, c.active
		m.windowFull(now)
		if m.own.window != c.want {
			t.Errorf("%+v: a window of %d", c, m.own.window)
		}
	}
	f := &flow{activeAt: 5}
	if !f.active(4+activeFor) || f.active(5+activeFor) || (&flow{}).active(1) {
		t.Error("a root is active for activeFor")
	}
}

// A member that goes down, or is back, may be what a blocked root waits for: it looks at once. Another
// root has nothing to look at.
func TestBlockedRootLooksWhenTreesChange(t *testing.T) {
	for blocked, m := range map[bool]*Member{false: group(t, Config{}, 2)[0], true: blockedRoot(t)} {
		m.setDown(1, true)
		if (m.Deadline() <= 1) != blocked || (m.own.creditDue <= 1) != blocked {
			t.Errorf("blocked: %t; due at %d", blocked, m.Deadline())
		}
	}
}
