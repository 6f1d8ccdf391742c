package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Requests for what is missing, and the answers to them.

// trimmedBy gives a member the reply of a peer that keeps root 0's stream from a segment on.
func trimmedBy(t *testing.T, m *Member, now protocol.Time, from protocol.Rank, first uint64) {
	t.Helper()
	f := frame{kind: trimmed, incarnation: 1, first: first, messages: uint32(first)}
	if err := m.Receive(now, from, f.append(nil)); err != nil {
		t.Fatal(err)
	}
}

// A reply that a peer has trimmed what was requested leads to a request of another one at once. A
// frozen member does so for the first reply of each peer, and another one so many times. Replies
// that concern nothing that is missing, or that no member of the view sends, are ignored.
func TestRepliesOfPeersThatHaveTrimmed(t *testing.T) {
	const now = 5000 * millisecond
	for _, c := range []struct {
		what    string
		first   uint64
		from    protocol.Rank
		frozen  bool
		idle    bool
		before  int // replies of rank 5
		counted bool
		atOnce  bool
	}{
		{what: "the first", first: 8, from: 5, counted: true, atOnce: true},
		{what: "of what is here", first: 1, from: 5},
		{what: "of what follows", first: 2, from: 5, counted: true, atOnce: true},
		{what: "unasked", first: 8, from: 5, idle: true},
		{what: "of no member", first: 8, from: 20},
		{what: "again", first: 8, from: 5, before: 1, counted: true, atOnce: true},
		{what: "the last that counts", first: 8, from: 5, before: maxTries - 1, counted: true, atOnce: true},
		{what: "one too many", first: 8, from: 5, before: maxTries, counted: true},
		{what: "frozen", first: 8, from: 5, frozen: true, counted: true, atOnce: true},
		{what: "frozen, again", first: 8, from: 5, frozen: true, before: 1, counted: true},
		{what: "frozen, another one", first: 8, from: 6, frozen: true, before: 1, counted: true, atOnce: true},
		{what: "frozen, after many", first: 8, from: 6, frozen: true, before: maxTries, counted: true, atOnce: true},
	} {
		m, f := behind(t, 10)
		receiveFrom(t, m, 1, 0, 0, 0, 10)
		p := &f.pull
		m.frozen, m.due = c.frozen, protocol.Never
		p.trimmedReplies, p.due = c.before, now+1000
		if c.before > 0 {
			p.trimmedBy, p.trimmedTo = []protocol.Rank{5}, 8
		}
		if c.idle {
			p.due = protocol.Never
		}
		trimmedBy(t, m, now, c.from, c.first)
		if counted := p.trimmedReplies > c.before; counted != c.counted || counted &&
			(p.trimmedTo != c.first || !slices.Contains(p.trimmedBy, c.from)) {
			t.Errorf("%s: counted %t, %+v", c.what, counted, p)
		}
		if (p.due == now) != c.atOnce || (m.Deadline() == now) != c.atOnce {
			t.Errorf("%s: the next request is due at %d", c.what, p.due)
		}
	}
}

// Replies about what has arrived meanwhile do not count for what is missing now.
func TestOldRepliesAreForgotten(t *testing.T) {
	for number, forgotten := range map[uint64]bool{2: false, 3: true, 4: true} { // segments that arrive
		m, f := behind(t, 10)
		trimmedBy(t, m, 1, 5, 3)
		for n := range number {
			receiveFrom(t, m, 1, 0, n, 0, 10)
		}
		trimmedBy(t, m, 1, 6, 8)
		if p := &f.pull; (p.trimmedReplies == 1) != forgotten || (p.trimmedTo == 8) != forgotten ||
			(len(p.trimmedBy) == 1) != forgotten {
			t.Errorf("%d segments are here: %+v", number, p)
		}
	}
}

// A hole is given up when enough members have been asked, and only as far as all that have answered
// have trimmed it. While the tree may bring it, it is not.
func TestWhenAHoleIsUnavailable(t *testing.T) {
	for _, c := range []struct {
		what      string
		tries     int
		replies   int
		trimmedTo uint64
		parent    bool // has replied
		fedAt     protocol.Time
		gone      bool
	}{
		{"asked and told", maxTries, 1, 8, false, 0, true},
		{"asked too few", maxTries - 1, 1, 8, true, 0, false},
		{"told nothing", maxTries, 0, 8, false, 0, false},
		{"told of what is here", maxTries, 1, 5, true, 0, false},
		{"the tree may bring it", maxTries, 1, 8, false, 10, false},
		{"the parent has trimmed it", maxTries, 1, 8, true, 10, true},
	} {
		m, f := behind(t, 10)
		f.next, f.fedAt = 5, c.fedAt
		f.pull.tries, f.pull.trimmedReplies, f.pull.trimmedTo, f.pull.trimmedBy = c.tries, c.replies, c.trimmedTo,
			[]protocol.Rank{7}
		if c.parent {
			f.pull.trimmedBy = []protocol.Rank{f.parent}
		}
		if to, gone := m.unavailable(20, f); gone != c.gone || gone && to != c.trimmedTo {
			t.Errorf("%s: gone %t, up to %d", c.what, gone, to)
		}
	}
}

// What nobody answers for is requested for a while and not for ever, whatever was said of it
// before. If it was said that it is gone, it is given up in the end.
func TestRequestsEnd(t *testing.T) {
	for _, c := range []struct {
		what    string
		prepare func(*Member, *flow)
		lost    uint64
	}{
		{"nothing was said", func(*Member, *flow) {}, 0},
		{"it was said before a repair has come", func(_ *Member, f *flow) { f.pull.trimmedTo = 8 }, 0},
		{"it was said of what is here", func(_ *Member, f *flow) {
			f.pull.trimmedTo, f.pull.trimmedReplies, f.pull.trimmedBy = 1, 1, []protocol.Rank{7}
		}, 0},
		{"one has trimmed it, and the tree was slow", func(m *Member, f *flow) {
			f.fedAt = 1
			f.pull.trimmedTo, f.pull.trimmedReplies, f.pull.trimmedBy, f.pull.tries = 8, 1, []protocol.Rank{7}, maxUnanswered
		}, 7},
	} {
		m, f := behind(t, 10)
		receiveFrom(t, m, 1, 0, 0, 0, 10)
		f.pull.nextSeen, f.fedAt = 1, 0
		c.prepare(m, f)
		runTo(m, 1, 3_600_000*millisecond)
		if asked := m.Stats().Requests; asked > 2*maxUnanswered || m.Stats().Lost != c.lost ||
			m.Deadline() != protocol.Never {
			t.Errorf("%s: %d requests, %d lost, due at %d", c.what, asked, m.Stats().Lost, m.Deadline())
		}
	}
}

// A hole that all but the tree have given up is looked at again when the tree's time is over, and
// not before.
func TestPausedPullEndsWithTheTreesTime(t *testing.T) {
	m, f := behind(t, 10)
	f.fedAt, f.pull.tries, f.pull.trimmedReplies, f.pull.trimmedTo = 100, maxUnanswered, 1, 8
	m.requestMissing(101, f)
	if f.pull.due != 100+lossTimeout || f.pull.tries != 0 {
		t.Errorf("due at %d", f.pull.due)
	}
}

// A request asks for what is missing up to the first segment that is here, for few segments at
// first, and for more while requests are answered. A frozen member asks for as many as it may.
func TestLengthOfRequests(t *testing.T) {
	asks := func(m *Member, f *flow) (first, last uint64) {
		m.sendRequest(1, f)
		for _, s := range drain(m, 1) {
			if fr, _ := parse(s.frame); fr.kind == request {
				first, last = fr.first, fr.last
			}
		}
		return first, last
	}
	for answered, want := range map[int]uint64{0: 4, 1: 8, 2: 16, 3: 32, 4: 32, 100: 32} {
		m, f := behind(t, 100)
		f.pull.answered = answered
		if _, last := asks(m, f); last != want || f.pull.requestedTo != want {
			t.Errorf("after %d answers, %d segments are requested", answered, last)
		}
	}
	m, f := behind(t, 100)
	receiveFrom(t, m, 1, 0, 2, 0, 10)
	receiveFrom(t, m, 1, 0, 5, 0, 10)
	if first, last := asks(m, f); first != 0 || last != 2 {
		t.Errorf("segments %d to %d are requested", first, last)
	}
	m, f = behind(t, 3)
	if _, last := asks(m, f); last != 3 {
		t.Errorf("segments up to %d are requested, of 3", last)
	}
	m, f = behind(t, 100)
	m.Freeze()
	if _, last := asks(m, f); last != maxRequested {
		t.Errorf("frozen: segments up to %d are requested", last)
	}
}

// A request is repeated after twice the time each time, up to a limit. A frozen member, for which
// all wait, repeats it sooner, unless repairs take long.
func TestRequestsBackOff(t *testing.T) {
	for _, c := range []struct {
		frozen bool
		took   protocol.Time
		most   protocol.Time
	}{
		{false, 0, maxRequestInterval},
		{true, 0, maxRequestInterval / 4},
		{true, 300 * millisecond, 600 * millisecond},
	} {
		m, f := behind(t, 10)
		m.frozen, m.repairTook = c.frozen, c.took
		first := max(2*m.skew.lead(), min(c.took, maxRequestInterval/4))
		for i := range 9 {
			m.due = protocol.Never
			m.sendRequest(1, f)
			if want := 1 + min(first<<min(i, 6), c.most); f.pull.due != want || m.Deadline() != want {
				t.Errorf("%+v: request %d is repeated after %d µs, want %d", c, i, f.pull.due/microsecond, want/microsecond)
			}
		}
	}
}

// How long repairs take is measured from the first request that was not answered. What comes
// unasked measures nothing. A member that was stopped is late once: the time at most doubles, or
// becomes maxWait.
func TestHowLongRepairsTake(t *testing.T) {
	m, f := behind(t, 3)
	at := f.pull.due
	requests(m, at)
	again := f.pull.due
	requests(m, again)
	for number := range uint64(3) {
		repaired(t, m, again+5*millisecond, 5, number)
	}
	if took := again + 5*millisecond - at; m.repairTook != took || f.pull.asked != 0 {
		t.Errorf("repairs take %d µs, want %d", m.repairTook/microsecond, took/microsecond)
	}
	before := m.repairTook
	m.learnRepair(100_000*millisecond, &pull{})
	if m.repairTook != before {
		t.Error("a repair that was not requested is measured")
	}
	m.learnRepair(100_000*millisecond, &pull{asked: 1})
	if m.repairTook != maxWait {
		t.Errorf("after a stop, repairs take %d ms", m.repairTook/millisecond)
	}
	m.learnRepair(100_000*millisecond, &pull{asked: 1})
	if m.repairTook != 2*maxWait {
		t.Errorf("after another one, repairs take %d ms", m.repairTook/millisecond)
	}
}

// The members that are asked are the last few that have made offers. One that has only sent a later
// segment is asked if there is no other.
func TestSourcesOfRepairs(t *testing.T) {
	m, f := behind(t, 10)
	for _, r := range []protocol.Rank{6, 7, 8, 6, 0} {
		m.schedulePull(1, f, r, true)
	}
	if want := []protocol.Rank{7, 8, 6, 0}; !slices.Equal(f.pull.sources, want) {
		t.Errorf("%v are asked, want %v", f.pull.sources, want)
	}
	f.pull.sources = []protocol.Rank{5, 6}
	f.pull.addSource(5)
	if !slices.Equal(f.pull.sources, []protocol.Rank{6, 5}) {
		t.Errorf("%v are asked after an offer of the first one", f.pull.sources)
	}
	m.schedulePull(1, f, 3, false)
	if slices.Contains(f.pull.sources, 3) {
		t.Error("a member that may have the same hole is asked")
	}
	f.pull = pull{due: protocol.Never}
	m.due = protocol.Never
	m.schedulePull(1, f, 3, false)
	if !slices.Equal(f.pull.sources, []protocol.Rank{3}) || f.pull.due != 1+m.skew.lead() || m.Deadline() != f.pull.due {
		t.Errorf("%+v", f.pull)
	}
	m.schedulePull(2, f, 3, false)
	if f.pull.due != 1+m.skew.lead() {
		t.Error("a pull that is scheduled is moved")
	}
}

// What a member does not keep is not sent, and it says from where on it keeps the stream. What waits
// for a peer whose queue is full needs no answer.
func TestAnswersToRequests(t *testing.T) {
	for _, c := range []struct {
		what        string
		first, last uint64
		backlog     bool
		repairs     int
		trimmedTo   uint64
	}{
		{"kept", 3, 5, false, 2, 0},
		{"the last", 5, 9, false, 1, 0},
		{"more than may be asked for", 3, 100, false, 3, 0},
		{"not kept", 2, 5, false, 0, 3},
		{"not kept, but it waits", 2, 5, true, 0, 0},
		{"not here yet", 6, 9, false, 0, 0},
		{"nothing", 3, 3, false, 0, 0},
	} {
		m, f := behind(t, 0)
		for number := range uint64(6) {
			receiveFrom(t, m, 1, 0, number, 0, 10)
		}
		drain(m, 1)
		for range 3 {
			f.store.trimOldest()
		}
		if c.backlog {
			m.startBacklog(1, send{to: 7, kind: data, flow: f})
		}
		answerTo(t, m, 1, 7, frame{kind: request, first: c.first, last: c.last})
		repairs, trimmedTo := 0, uint64(0)
		for _, s := range drain(m, 1) {
			switch fr, _ := parse(s.frame); {
			case s.to == 7 && fr.kind == repair && fr.first == c.first+uint64(repairs):
				repairs++
			case s.to == 7 && fr.kind == trimmed:
				trimmedTo = fr.first
			}
		}
		if repairs != c.repairs || trimmedTo != c.trimmedTo || m.Stats().Repaired != uint64(repairs) {
			t.Errorf("%s: %d repairs, trimmed up to %d", c.what, repairs, trimmedTo)
		}
	}
	m := group(t, Config{}, 2)[0]
	for range 2 * maxRequested {
		if err := m.Write(make([]byte, 2000), 0); err != nil {
			t.Fatal(err)
		}
	}
	drain(m, 1)
	answerTo(t, m, 1, 1, frame{kind: request, last: 1000})
	if n := sentOf(m, 1, repair); n != maxRequested {
		t.Errorf("%d repairs at once", n)
	}
}

// What the inbox has no room for is not requested, except what a cut needs.
func TestWhatWaitsForTheInbox(t *testing.T) {
	for _, c := range []struct {
		next, cut uint64
		full      bool
		waits     bool
	}{{5, 0, true, true}, {5, 5, true, true}, {5, 6, true, false}, {5, 0, false, false}} {
		m, f := behind(t, 10)
		f.next, f.cut = c.next, c.cut
		if c.full {
			m.inbox.bytes = 2*m.config.InboxBytes + 1
		}
		if got := m.waitsForInbox(f); got != c.waits {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
