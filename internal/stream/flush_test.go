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
		if m.Flushed() == want || (f.pull.due == 5) != want || want && (!slices.Equal(f.pull.sources, []protocol.Rank{2}) || f.wanted != 3) {
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
	if m.flows[0] != nil || ended.next != 1 || slices.Contains(m.scheduled, ended) || ended.correction.due != protocol.Never {
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
		if f := m.flows[0]; f.pull.due > 2+m.skew.lead() || !f.scheduled || !slices.Equal(f.pull.sources, []protocol.Rank{0}) {
			t.Errorf("drops %t: a stream that was refused is pulled at %d", drops, f.pull.due)
		}
	}
}

// Memory is used again when the last segment of its message is trimmed, if the program has released
// it and nothing else uses it.
func TestWhenMemoryIsUsedAgain(t *testing.T) {
	for what, c := range map[string]struct {
		buffer *reassemblyBuffer
		number uint64
		again  bool
	}{
		"none":               {nil, 2, false},
		"the last":           {&reassemblyBuffer{next: 3, leased: true}, 2, true},
		"not the last":       {&reassemblyBuffer{next: 3, leased: true}, 1, false},
		"not delivered":      {&reassemblyBuffer{next: 3}, 2, false},
		"not released":       {&reassemblyBuffer{next: 3, leased: true, leases: 1}, 2, false},
		"a transport has it": {&reassemblyBuffer{next: 3, leased: true, lent: true}, 2, false},
	} {
		m := group(t, Config{}, 2)[0]
		if c.buffer != nil {
			c.buffer.memory = make([]byte, 100)
		}
		if m.recycle(c.number, &segment{buffer: c.buffer}); (m.spare.bytes > 0) != c.again {
			t.Errorf("%s: used again: %t", what, m.spare.bytes > 0)
		}
	}
	m := group(t, Config{}, 3)[0]
	in, out := &reassemblyBuffer{}, &reassemblyBuffer{}
	if m.queueSegment(1, m.own.flow, data, &segment{buffer: in}); !m.sends(in) || m.sends(out) {
		t.Error("memory of a frame that waits is free, or another one's is not")
	}
	m.lastSent = m.outbox.Pop()
	if !m.sends(in) {
		t.Error("memory of the frame that is being sent is free")
	}
	empty := frame{kind: data, begins: true, root: 1, incarnation: 1}
	b := empty.append(nil)
	m.ReceiveBuffer(1, b, len(b))
	if err := m.BufferFilled(1, 1, b, nil); err != nil || m.Pending() != 1 {
		t.Errorf("an empty message that is read into a buffer: %v", err)
	}
}
