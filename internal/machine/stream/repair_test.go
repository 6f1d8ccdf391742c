package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Rules of repairs that a stream does without for a while, if they are wrong.

// behind returns member 4 of nine, which was offered as many segments of root 0, and the flow.
func behind(t *testing.T, offered uint64) (*Member, *flow) {
	t.Helper()
	m := group(t, Config{}, 9)[4]
	f := frame{kind: offer, root: 0, incarnation: 1, first: offered}
	if err := m.Receive(1, 5, f.append(nil)); err != nil {
		t.Fatal(err)
	}
	return m, m.flowOf(MemberID{0, 1})
}

// requests returns how many requests a member sends now.
func requests(m *Member, now protocol.Time) (n int) {
	for _, s := range drain(m, now) {
		if kind(s.frame[0]) == request {
			n++
		}
	}
	return n
}

// Beside those that have made offers, a member asks its neighbors, one after the other and
// further and further out, and none twice before all. Every fourth request goes to one that has
// made an offer, and the last one to the parent.
func TestRepairsAreAskedForFurtherAndFurtherOut(t *testing.T) {
	for n := 1; n < 5; n++ {
		m, f := behind(t, 3)
		f.pull.sources = []protocol.Rank{8, 0, 7, 1}[:n]
		var neighbors []protocol.Rank
		for f.pull.tries = range maxTries - 1 {
			r := m.nextSource(f)
			if f.pull.tries >= n && f.pull.tries%4 != 3 {
				neighbors = append(neighbors, r)
			} else if !slices.Contains(f.pull.sources, r) {
				t.Errorf("%d sources: request %d goes to %d", n, f.pull.tries, r)
			}
		}
		var want []protocol.Rank
		for i := range neighbors {
			want = append(want, m.roster.neighbor(1+i/2, i%2 == 1))
		}
		if !slices.Equal(neighbors, want) {
			t.Errorf("%d sources: neighbors %v are asked, want %v", n, neighbors, want)
		}
		f.pull.tries = maxTries - 1
		if m.nextSource(f) != f.parent {
			t.Errorf("%d sources: the last request goes to %d", n, m.nextSource(f))
		}
	}
}

// An offer of what is here makes no work: members exchange many of them.
func TestOfferOfWhatIsHereMakesNoWork(t *testing.T) {
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	drain(m, 1)
	if f.next != 1 {
		t.Fatalf("%d segments", f.next)
	}
	for _, first := range []uint64{0, 1} {
		fr := frame{kind: offer, root: 0, incarnation: 1, first: first}
		if err := m.Receive(1, 5, fr.append(nil)); err != nil {
			t.Fatal(err)
		}
		if f.pull.due != protocol.Never || len(f.pull.sources) > 0 {
			t.Errorf("after an offer up to %d: %+v", first, f.pull)
		}
	}
}

// While the tree goes on to bring what others have offered, nothing is requested, although a
// segment has overtaken others. When it does not go on, it is.
func TestNothingIsRequestedWhileTheTreeGoesOn(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		m, f := behind(t, 8)
		receiveFrom(t, m, 1, 0, 6, 0, 10) // ahead: the tree is not just slow
		if f.pull.due == protocol.Never || len(f.ahead) == 0 {
			t.Fatalf("%+v", f.pull)
		}
		for number := range uint64(4) {
			if goesOn {
				receiveFrom(t, m, f.pull.due, 0, number, 0, 10)
			}
			if n := requests(m, f.pull.due); (n > 0) == goesOn {
				t.Fatalf("the tree goes on: %t; %d requests", goesOn, n)
			}
			if !goesOn {
				break
			}
		}
	}
}

// Losses whose number was not known at first are told when it is.
func TestLossesAreCountedLater(t *testing.T) {
	for _, c := range []struct {
		count    count
		messages uint32
		told     uint64
	}{
		{count{begun: 5, lower: true}, 8, 3},
		{count{begun: 5, lower: true}, 5, 0},
		{count{begun: 5}, 8, 0},
		{count{begun: 5, lower: true, unknown: true}, 8, 0},
	} {
		m, f := behind(t, 3)
		f.count = c.count
		m.countSegment(f, &segment{messages: c.messages})
		got, ok := m.Deliver(1)
		if got.Lost != c.told || ok != (c.told > 0) || f.count != (count{begun: c.messages}) {
			t.Errorf("%+v, then message %d: %d lost, %+v", c.count, c.messages, got.Lost, f.count)
		}
	}
}

// A peer that is not in the view is offered nothing.
func TestOthersAreOfferedNothing(t *testing.T) {
	m, _ := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	drain(m, 1)
	for peer, want := range map[protocol.Rank]bool{7: true, 20: false} {
		m.Up(1, peer)
		if got := len(drain(m, 1)) > 0; got != want {
			t.Errorf("rank %d is offered something: %t", peer, got)
		}
	}
}

// A hole is given up after maxTries requests, of which the last one has gone to the parent.
func TestHoleIsGivenUpAfterTheParentHasAnswered(t *testing.T) {
	m, f := behind(t, 10)
	asked, last := 0, protocol.NoRank
	for now := protocol.Time(1); m.stats.Lost == 0 && asked < 2*maxTries; now = max(now+1, m.Deadline()) {
		for _, s := range drain(m, now) {
			if kind(s.frame[0]) != request {
				continue
			}
			asked, last = asked+1, s.to
			trimmedTo := frame{kind: trimmed, root: 0, incarnation: 1, first: 8, messages: 8}
			if err := m.Receive(now, s.to, trimmedTo.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if asked != maxTries || last != f.parent || m.stats.Lost != 8 {
		t.Errorf("%d requests, the last one to %d, the child of %d; %d lost", asked, last, f.parent, m.stats.Lost)
	}
}

// A neighbor is tried again when it is down: the nearest one on either side, or the next one out
// if that is down already.
func TestNeighborsThatAreDownAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		down []protocol.Rank
		last protocol.Rank
		want bool
	}{
		{nil, 3, true},
		{nil, 5, true},
		{nil, 8, false},
		{nil, 6, false},
		{[]protocol.Rank{5}, 6, true},
		{[]protocol.Rank{3}, 2, true},
		{[]protocol.Rank{3}, 6, false},
	} {
		m := group(t, Config{}, 9)[4]
		for _, peer := range c.down {
			m.Down(1, peer)
		}
		m.retryDue = protocol.Never
		m.Down(1, c.last)
		if (m.retryDue != protocol.Never) != c.want {
			t.Errorf("%v and then %d are down: tried again: %t", c.down, c.last, !c.want)
		}
	}
}

// A credit that was not timed measures nothing.
func TestCreditsThatAreNotTimed(t *testing.T) {
	for _, timed := range []uint64{0, 1} {
		m := group(t, Config{}, 3)[0]
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
		m.own.timed, m.own.timedAt, m.own.halved = timed, 1, true
		for r := range protocol.Rank(2) {
			credit := frame{kind: grantCredit, root: 0, incarnation: 1, first: 1, view: 1}
			if err := m.Receive(5, r+1, credit.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if m.own.halved != (timed == 0) || (m.own.base.least > 0) != (timed > 0) {
			t.Errorf("timed %d: %+v", timed, m.own.base)
		}
	}
}

// When all that was requested is here, the rest is requested at once, unless the tree has gone on
// meanwhile: then it may bring the rest.
func TestTheRestIsRequestedUnlessTheTreeGoesOn(t *testing.T) {
	for _, fed := range []bool{false, true} {
		m, f := behind(t, 20)
		now := f.pull.due
		if requests(m, now) != 1 {
			t.Fatal("nothing is requested")
		}
		for number := range f.pull.requestedTo {
			receiveFrom(t, m, now, 0, number, 0, 10)
		}
		f.fedAt = 0
		if fed {
			f.fedAt = now
		}
		f.pull.due, f.pull.requestedTo = now, f.next
		m.due = protocol.Never
		m.requestMore(now, f)
		if m.Deadline() > f.pull.due || (requests(m, now) > 0) == fed || f.pull.due <= now {
			t.Errorf("fed by the tree: %t; due at %d, at %d", fed, f.pull.due, now)
		}
	}
}

// Distances on the ring go both ways, past holes. A rank without a member has none.
func TestDistancesOnTheRing(t *testing.T) {
	r := roster{slots: 9, members: MemberList{{0, 1}, {2, 1}, {3, 1}, {7, 1}}, self: 1}
	for rank, want := range map[protocol.Rank][2]int{0: {1, 3}, 2: {0, 0}, 3: {3, 1}, 7: {2, 2}, 1: {0, 0}, 8: {0, 0}} {
		if left, right := r.distances(rank); left != want[0] || right != want[1] {
			t.Errorf("rank %d is %d to the left and %d to the right, want %v", rank, left, right, want)
		}
	}
}

// A member knows how old the last segment is that has arrived, and of no other one.
func TestAgeOfTheLastSegment(t *testing.T) {
	f := &flow{arrived: arrival{next: 5, at: 1000 * microsecond}}
	for number, want := range map[uint64]bool{4: false, 5: true, 6: false} {
		age, known := f.ageOf(1250*microsecond, number)
		if known != want || known && age != 250 {
			t.Errorf("before %d: %d µs, known: %t", number, age, known)
		}
	}
}

// What a member tells of others is what it lacks of them, and who has not acknowledged.
func TestWhatOthersOwe(t *testing.T) {
	m, f := behind(t, 8)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	if s := m.PeerStates(1)[0]; s.Missing != 7 || f.next != 1 {
		t.Errorf("%+v", s)
	}
	root := group(t, Config{}, 3)[0]
	if err := root.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(root, 1)
	root.Poll(1)
	own := root.own.flow
	if got := root.Unanswered(); !slices.Equal(got, own.ackers) || len(got) == 0 {
		t.Errorf("%v have not answered", got)
	}
	own.acks.from = map[protocol.Rank]uint64{own.ackers[0]: own.acks.wanted}
	if got := root.Unanswered(); slices.Contains(got, own.ackers[0]) {
		t.Errorf("%v have not answered", got)
	}
}

// What arrived behind a hole is delivered when the hole is given up, the first segment behind it
// included.
func TestWhatIsBehindAHoleIsKept(t *testing.T) {
	m, f := behind(t, 10)
	receiveFrom(t, m, 1, 0, 5, 0, 10)
	receiveFrom(t, m, 1, 0, 8, 0, 10)
	f.correction.due, f.tailProbe.due = protocol.Never, protocol.Never
	m.giveUp(1, f, 8)
	if f.next != 9 || f.aheadBytes != 0 || len(f.ahead) > 0 {
		t.Errorf("it goes on at %d, and %d segments of %d bytes are ahead", f.next, len(f.ahead), f.aheadBytes)
	}
	if f.correction.due == protocol.Never || f.tailProbe.due != 1+tailProbeInterval || f.pull.due != 1 {
		t.Errorf("what is here is corrected at %d and probed at %d, and the rest is pulled at %d", f.correction.due,
			f.tailProbe.due, f.pull.due)
	}
}

// A tree that has brought something a moment ago, and has no hole, may only be slow. It is given
// some time before the rest is requested, unless the parent is down.
func TestSlowTreeIsGivenTime(t *testing.T) {
	for _, down := range []bool{false, true} {
		m, f := behind(t, 8)
		receiveFrom(t, m, f.pull.due, 0, 0, 0, 10)
		if down {
			m.Down(f.fedAt, f.parent)
		}
		patience := f.fedAt + m.skew.patience()
		now := f.fedAt
		for ; requests(m, now) == 0; now = max(now+1, f.pull.due) {
			if now > patience+m.skew.lead() {
				t.Fatalf("parent down: %t: nothing is requested", down)
			}
		}
		if now < patience != down {
			t.Errorf("parent down: %t: requested %d µs after the tree's last segment, of %d", down, (now-f.fedAt)/microsecond,
				m.skew.patience()/microsecond)
		}
	}
}

// A member that is fed by a foster parent renews the adoption halfway, by one request. Segments of
// others are no reason to.
func TestAdoptionIsRenewed(t *testing.T) {
	for _, c := range []struct {
		from protocol.Rank
		kind kind
		want int
	}{{7, data, 2}, {8, data, 0}, {7, repair, 0}} {
		m, f := behind(t, 0)
		f.foster.parent = 7
		renewed := 0
		for number := range uint64(fosterSegments) {
			fr := frame{kind: c.kind, begins: true, root: 0, incarnation: 1, first: number}
			if err := m.Receive(1, c.from, fr.append(nil)); err != nil {
				t.Fatal(err)
			}
			for _, s := range drain(m, 1) {
				if kind(s.frame[0]) == adopt && s.to == 7 {
					renewed++
				}
			}
		}
		if renewed != c.want {
			t.Errorf("fed by %d, kind %d: renewed %d times, want %d", c.from, c.kind, renewed, c.want)
		}
	}
}

// What waits for a time is done at that time, not after it: a driver calls a member when it has
// asked for it.
func TestTimersAreInTime(t *testing.T) {
	root := group(t, Config{}, 3)[0]
	if err := root.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(root, 1)
	root.Poll(1)
	drain(root, 1)
	polls := 0
	for _, s := range drain(root, root.own.pollDue) {
		if kind(s.frame[0]) == poll {
			polls++
		}
	}
	if polls != len(root.own.flow.ackers) {
		t.Errorf("%d polls are repeated when that is due", polls)
	}
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	for f.tailProbe.remaining == tailProbes {
		now := m.Deadline()
		drain(m, now)
		if m.Deadline() <= now {
			t.Fatalf("called at %d, it asks for %d", now, m.Deadline())
		}
	}
}

// Without a token, a question waits for longer than planned, and for a bounded time. Corrections
// that need none earn the next one, and a question that was needed costs nothing.
func TestQuestionsWithoutATokenWait(t *testing.T) {
	const began, planned, lead = 1000 * millisecond, 1002 * millisecond, millisecond
	const patient = began + patientLeads*lead
	var b budget
	want := func(what string, want protocol.Time) {
		t.Helper()
		if got := b.postpone(began, planned, lead); got != want {
			t.Errorf("%s: it goes on after %d µs, want %d", what, (got-began)/microsecond, (want-began)/microsecond)
		}
	}
	for range maxSpent / questionCost {
		want("a token is left", planned)
		b.spend()
	}
	want("none is left", patient)
	if got := b.postpone(began, patient+lead, lead); got != patient+lead {
		t.Error("it goes on before it was planned")
	}
	if got := b.postpone(began, planned, maxWait); got != began+maxWait {
		t.Errorf("it waits for %d ms", (got-began)/millisecond)
	}
	for range questionCost - 1 {
		b.earn()
		want("too little is earned", patient)
	}
	b.earn()
	want("one is earned", planned)
	b.spend()
	b.refund()
	want("the last one is given back", planned)
}

// What a member knows of lost messages is not forgotten because another one, which has trimmed as
// much, does not know how many there were.
func TestKnownLossesAreNotForgotten(t *testing.T) {
	m, f := behind(t, 10)
	for i, reply := range []frame{{first: 8, messages: 7}, {first: 8}, {first: 9, messages: 9}, {first: 6, messages: 6}} {
		reply.kind, reply.root, reply.incarnation = trimmed, 0, 1
		if err := m.Receive(1, protocol.Rank(i+5), reply.append(nil)); err != nil {
			t.Fatal(err)
		}
		want := frame{first: 8, messages: 7}
		if reply.first < want.first {
			want = reply
		}
		if f.pull.trimmedTo != want.first || f.pull.messages != want.messages {
			t.Errorf("reply %d: %d messages are lost before %d", i, f.pull.messages, f.pull.trimmedTo)
		}
	}
}

// A correction leaves the tree some time first.
func TestCorrectionLeavesTheTreeTime(t *testing.T) {
	m, f := behind(t, 0)
	const arrived = 1000 * millisecond
	receiveFrom(t, m, arrived, 0, 0, 0, 10)
	if due := f.correction.due; due != arrived+m.skew.lead() {
		t.Errorf("it begins after %d µs, and the lead is %d", (due-arrived)/microsecond, m.skew.lead()/microsecond)
	}
}

// An adoption ends when the parent in the tree sends something, although others were earlier. What
// others send twice does not end it.
func TestOnlyTheParentEndsAnAdoption(t *testing.T) {
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	f.foster.parent = 7
	for _, c := range []struct {
		from protocol.Rank
		kind kind
		ends bool
	}{{7, data, false}, {5, repair, false}, {f.parent, repair, false}, {f.parent, data, true}} {
		fr := frame{kind: c.kind, begins: true, root: 0, incarnation: 1, segment: make([]byte, 10)}
		if err := m.Receive(1, c.from, fr.append(nil)); err != nil {
			t.Fatal(err)
		}
		if ended := f.foster.parent == protocol.NoRank; ended != c.ends {
			t.Errorf("a segment of rank %d, of kind %d: the adoption ends: %t", c.from, c.kind, ended)
		}
	}
}

// A group of which only the size is known has all ranks below it.
func TestAllRanks(t *testing.T) {
	for rank, want := range map[protocol.Rank]bool{-1: false, 0: true, 4: true, 5: false} {
		if i, ok := allRanks(5).Index(rank); ok != want || ok && i != int(rank) {
			t.Errorf("rank %d: %d, %t", rank, i, ok)
		}
	}
}
