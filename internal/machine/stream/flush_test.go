package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// View changes of one member, step by step.

// A member that freezes reports the streams that have advanced in the view, in order.
func TestPositionsOfAFrozenMember(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	receiveFrom(t, m, 1, 3, 0, 0, 10)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 2, 4, m.roster.members); err != nil {
		t.Fatal(err)
	}
	receiveFrom(t, m, 1, 3, 1, 0, 10)
	want := []Position{{MemberID{3, 1}, 2, 1}}
	if got := m.Freeze(); !slices.Equal(got, want) || !m.Frozen() {
		t.Errorf("%v, want %v", got, want)
	}
	receiveFrom(t, m, 1, 3, 2, 0, 10)
	if f := m.flows[3]; !slices.Equal(m.Freeze(), []Position{{MemberID{3, 1}, 3, 1}}) || f.frozenAt != 2 {
		t.Error("frozen again, it forgets where it was frozen")
	}
	if got := m.Positions(); !slices.Equal(got, []Position{{MemberID{0, 1}, 1, 1}, {MemberID{3, 1}, 1, 1}}) {
		t.Errorf("the view began at %v", got)
	}
}

// What arrives while a member is frozen is forwarded when it goes on, once: in the same view or, as
// far as that is of the next one, with that view.
func TestWhatIsHeldIsForwarded(t *testing.T) {
	for _, thaws := range []bool{true, false} {
		m := group(t, Config{}, 4)[1] // rank 3 is below
		receiveFrom(t, m, 1, 0, 0, 0, 10)
		if n := sentOf(m, 1, data); n != 1 {
			t.Fatalf("%d segments are forwarded", n)
		}
		m.Freeze()
		receiveFrom(t, m, 1, 0, 1, 0, 10)
		receiveFrom(t, m, 1, 0, 2, 0, 10)
		if n := sentOf(m, 1, data); n != 0 || m.Pending() > 0 {
			t.Fatalf("frozen: %d segments are forwarded", n)
		}
		m.Flush(1, []Position{{MemberID{0, 1}, 2, 0}, {MemberID{3, 7}, 5, 0}})
		want := 2
		if thaws {
			m.Thaw()
		} else {
			want = 1
			if err := m.Install(1, 2, 4, m.roster.members); err != nil {
				t.Fatal(err)
			}
		}
		if n := sentOf(m, 1, data); n != want || m.Pending() != 2 || m.flows[0].frozenAt != 3 {
			t.Errorf("thaws %t: %d segments are forwarded, %d messages delivered", thaws, n, m.Pending())
		}
		m.Freeze()
		m.Thaw()
		if n := sentOf(m, 1, data); n != 0 {
			t.Errorf("thaws %t: %d segments are forwarded again", thaws, n)
		}
	}
}

// A flush pulls what is missing before the cut at once, from the holder, and nothing else.
func TestFlushPullsWhatIsMissing(t *testing.T) {
	for next, want := range map[uint64]bool{2: true, 3: false, 4: false} {
		m := group(t, Config{}, 4)[1]
		for number := range next {
			receiveFrom(t, m, 1, 0, number, 0, 10)
		}
		drain(m, 1)
		m.Freeze()
		m.Flush(5, []Position{{MemberID{0, 1}, 3, 2}})
		f := m.flows[0]
		if m.Flushed() == want || (f.pull.due == 5) != want || want && (!slices.Equal(f.pull.sources, []protocol.Rank{2}) ||
			f.wanted != 3) {
			t.Errorf("%d of 3 segments: flushed %t, %+v", next, m.Flushed(), f.pull)
		}
		if n := requests(m, 5); (n > 0) != want {
			t.Errorf("%d of 3 segments: %d requests", next, n)
		}
	}
}

// A process is told of streams as far as it was a member: all of the view if it is in it, what was
// before if it left with it, and nothing if it left earlier, or if that is not known.
func TestWhatIsSharedWithProcessesOutside(t *testing.T) {
	m := group(t, Config{}, 5)[0]
	write := func() {
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
	}
	install := func(view uint64, members ...protocol.Rank) {
		m.Flush(1, m.Freeze())
		var list MemberList
		for _, r := range members {
			list = append(list, MemberID{r, 1})
		}
		if err := m.Install(1, view, 5, list); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
	}
	shared := func(want map[protocol.Rank]uint64) {
		t.Helper()
		for peer, end := range want {
			m.offer(1, peer, m.own.flow, undirected)
			fr, _ := parse(drain(m, 1)[0].frame)
			if fr.first != end || m.leftEarlier(peer) != (end == 0) {
				t.Errorf("rank %d is offered %d segments, want %d; left earlier: %t", peer, fr.first, end, m.leftEarlier(peer))
			}
		}
	}
	write()
	install(2, 0, 1, 2, 3)
	write()
	shared(map[protocol.Rank]uint64{1: 2, 4: 1})
	install(3, 0, 1, 2)
	write()
	shared(map[protocol.Rank]uint64{1: 3, 3: 2, 4: 0})
	install(7, 0, 1, 4) // views in between are not known
	shared(map[protocol.Rank]uint64{1: 3, 4: 3, 2: 0, 3: 0})
	answerTo(t, m, 1, 3, frame{kind: request, first: 1, last: 3})
	if f, _ := parse(drain(m, 1)[0].frame); f.kind != trimmed || f.first != 3 {
		t.Errorf("a process that has left earlier gets %+v", f)
	}
	answerTo(t, m, 1, 3, frame{kind: request, first: 3, last: 4})
	if sent := drain(m, 1); len(sent) > 0 {
		t.Errorf("asked for the present view, it gets %d frames", len(sent))
	}
}

// The streams of roots that are not in the view end with it: they are not heard, corrected or
// looked at any more.
func TestStreamsEndWithTheirRoots(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	receiveFrom(t, m, 1, 2, 0, 0, 10)
	ended := m.flows[0]
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 2, 4, MemberList{{1, 1}, {2, 1}, {3, 1}}); err != nil {
		t.Fatal(err)
	}
	receiveFrom(t, m, 1, 0, 1, 0, 10)
	if m.flows[0] != nil || ended.next != 1 || slices.Contains(m.scheduled, ended) ||
		ended.correction.due != protocol.Never {
		t.Errorf("a stream that has ended is at %d, corrected at %d", ended.next, ended.correction.due)
	}
	if len(m.endedFlows) != 1 || m.flows[2] == nil {
		t.Errorf("%d streams have ended", len(m.endedFlows))
	}
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 3, 4, m.roster.members); err != nil || len(m.endedFlows) > 0 {
		t.Errorf("%v; %d streams are kept for longer than a view", err, len(m.endedFlows))
	}
}

// A member that is not in a view stops: it neither sends as a root nor corrects.
func TestMemberThatIsLeftOutStops(t *testing.T) {
	m := group(t, Config{Begins: true}, 3)[1]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 2, 3, MemberList{{0, 1}, {2, 1}}); err != nil {
		t.Fatal(err)
	}
	if m.Pending() > 0 {
		t.Error("a view without it begins for it")
	}
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	if n := sentOf(m, 100*millisecond, data); n > 0 {
		t.Errorf("it sends %d segments", n)
	}
	if !m.Frozen() || m.flows[0].correction.due != protocol.Never {
		t.Error("it goes on")
	}
}
