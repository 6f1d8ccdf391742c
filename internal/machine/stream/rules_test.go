package stream

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Rules of sending and receiving that a stream does without for a while, if they are wrong.

// What others send to a program that does not receive is bounded, whatever they take the window
// for: what there is no room for is refused, and pulled later.
func TestWhatIsHereIsBounded(t *testing.T) {
	const size, limit = 1000, 16 << 10
	for _, first := range []uint64{0, 1} { // 1: behind a hole
		m := group(t, Config{InboxBytes: limit, KeepBytes: limit}, 3)[1]
		for number := range uint64(100) {
			f := frame{kind: data, begins: true, root: 0, incarnation: 1, first: first + number, segment: make([]byte, size)}
			if err := m.Receive(1, 0, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		f := m.flowOf(MemberID{0, 1})
		if m.stats.Refused == 0 || m.inbox.bytes > 2*limit+2*size || f.aheadBytes > limit+2*size ||
			m.inbox.bytes+f.aheadBytes < limit {
			t.Errorf("from %d on: %d bytes wait, %d are ahead, %d segments are refused", first, m.inbox.bytes, f.aheadBytes,
				m.stats.Refused)
		}
	}
}

// A frozen root sends nothing, and goes on when it thaws. A root whose program does not receive
// sends all the same, unless its program gets its own messages, too.
func TestRootsThatMaySend(t *testing.T) {
	for _, c := range []struct{ frozen, full, echo, sends bool }{
		{sends: true},
		{echo: true, sends: true},
		{full: true, sends: true},
		{full: true, echo: true},
		{frozen: true},
		{frozen: true, echo: true},
	} {
		m := group(t, Config{InboxBytes: 1000, Echo: c.echo}, 3)[0]
		if c.full {
			f := frame{kind: data, begins: true, root: 1, incarnation: 1, segment: make([]byte, 2000)}
			if err := m.Receive(1, 1, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if c.frozen {
			m.Freeze()
		}
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		sends := func() bool {
			return slices.ContainsFunc(drain(m, 1), func(s sentFrame) bool {
				f, _ := parse(s.frame)
				return f.kind == data && f.root == 0
			})
		}
		if got := sends(); got != c.sends {
			t.Errorf("%+v: it sends: %t", c, got)
		}
		if c.frozen {
			m.Thaw()
			if !sends() {
				t.Errorf("%+v: it does not go on", c)
			}
		}
	}
}

// A message travels alone if those that follow it cannot be in its batch: no batch has one message.
func TestNoBatchHasOneMessage(t *testing.T) {
	m := group(t, Config{}, 2)[0]
	if err := m.Write([]byte("a"), 0); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteLabeled(Label{Topic: "topic"}, []byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	segments := 0
	for _, s := range drain(m, 1) {
		f, err := parse(s.frame)
		if err != nil {
			t.Fatal(err)
		}
		segments++
		if f.batch {
			t.Errorf("segment %d is a batch", f.first)
		}
	}
	if segments != 2 {
		t.Errorf("%d segments", segments)
	}
}

// An acknowledgment speaks for the members below its sender in one view. In another view, it says
// nothing.
func TestAcknowledgmentsCountInTheirView(t *testing.T) {
	m := group(t, Config{}, 3)[0]
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(m, 1)
	upTo := m.Poll(1)
	for _, view := range []uint64{2, 1} {
		for _, child := range m.own.flow.ackers {
			f := frame{kind: ack, root: 0, incarnation: 1, first: upTo, view: view}
			if err := m.Receive(1, child, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if stable := m.Stable() >= upTo; stable != (view == 1) {
			t.Errorf("acknowledged in view %d, polled in view 1: stable %t", view, stable)
		}
	}
}

// A message whose segments arrive in order is put together where it stays, so that the program can
// give its memory back. One that arrives out of order is joined in the end.
func TestMessageInOrderIsNotCopied(t *testing.T) {
	for _, order := range [][]uint64{{0, 1, 2}, {0, 2, 1}} {
		m := group(t, Config{}, 2)[1]
		for _, number := range order {
			f := frame{
				kind: data, begins: number == 0, root: 0, incarnation: 1, first: number,
				remaining: uint32(2-number) * 100, segment: bytes.Repeat([]byte{byte(number)}, 100),
			}
			if err := m.Receive(1, 0, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		message, _ := m.Deliver(1)
		if len(message.Data) != 300 || message.Data[0] != 0 || message.Data[150] != 1 || message.Data[299] != 2 {
			t.Fatalf("order %v: %d bytes", order, len(message.Data))
		}
		if inPlace := message.Lease != nil; inPlace != slices.IsSorted(order) {
			t.Errorf("order %v: in place: %t", order, inPlace)
		}
	}
	// The last segment has memory of its own, which holds a part of the message only.
	m := group(t, Config{}, 2)[1]
	for _, number := range []uint64{0, 2, 1} {
		f := frame{
			kind: data, begins: number == 0, root: 0, incarnation: 1, first: number, remaining: uint32(2-number) * 100,
			segment: make([]byte, 100),
		}
		b := f.append(nil)
		body := m.ReceiveBuffer(0, b[:40], len(b))
		if again := m.ReceiveBuffer(0, b[:40], len(b)); number < 2 && &again[0] != &body[0] {
			t.Errorf("segment %d: memory is lent twice", number)
		}
		copy(body, b[40:])
		if err := m.BufferFilled(1, 0, b[:40], body); err != nil {
			t.Fatal(err)
		}
	}
	next := frame{kind: data, begins: true, root: 0, incarnation: 1, first: 3, segment: make([]byte, 100)}
	b := next.append(nil)
	lost := m.ReceiveBuffer(0, b[:40], len(b))
	m.Down(1, 0)
	if again := m.ReceiveBuffer(1, b[:40], len(b)); &again[0] != &lost[0] {
		t.Error("memory that was lent for a connection which has ended is not used")
	}
	if message, ok := m.Deliver(1); !ok || len(message.Data) != 300 || message.Lease != nil {
		t.Errorf("%d bytes, with a lease: %t", len(message.Data), message.Lease != nil)
	}
}

// With a view, a stream is corrected among its members if it has something beyond the cut. One
// without anything new makes no work.
func TestNewViewCorrectsWhatIsNew(t *testing.T) {
	for _, next := range []uint64{1, 2} { // segments that are here, of which one is before the cut
		m := group(t, Config{}, 3)[1]
		for number := range next {
			receiveFrom(t, m, 1, 0, number, 0, 10)
		}
		f := m.flowOf(MemberID{0, 1})
		f.correction.stop()
		f.tailProbe.due = protocol.Never
		m.Freeze()
		m.Flush(1, []Position{{MemberID{0, 1}, 1, 0}})
		if err := m.Install(1, 2, 3, m.roster.members); err != nil {
			t.Fatal(err)
		}
		if corrects := f.correction.due != protocol.Never; corrects != (next > 1) ||
			corrects != (f.tailProbe.due != protocol.Never) {
			t.Errorf("%d segments: corrected: %t, probed at %d", next, corrects, f.tailProbe.due)
		}
	}
}

// A member that joins begins in the streams of the others where its view does. Its own stream
// begins with it, and those of processes that are not in the view are none of its.
func TestJoinerBeginsWhereTheViewDoes(t *testing.T) {
	members := MemberList{{0, 1}, {1, 2}}
	start := []Position{{MemberID{0, 1}, 5, 0}, {MemberID{1, 1}, 6, 0}, {MemberID{1, 2}, 7, 0}, {MemberID{2, 1}, 8, 0}}
	m, err := New(Config{Rank: 1, Size: 3, Incarnation: 2, View: 2, Members: members, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Positions(); !slices.Equal(got, []Position{{MemberID{0, 1}, 5, 1}}) {
		t.Errorf("it begins at %v", got)
	}
	if m.own.flow != m.flows[1] || m.own.flow.next != 0 || len(m.flows) != 2 {
		t.Errorf("its own stream begins at %d, and there are %d", m.own.flow.next, len(m.flows))
	}
}

// A root whose window is full asks for credits that may have been lost, but not at once: those of
// what it has just sent are on their way.
func TestCreditsAreNotAskedForAtOnce(t *testing.T) {
	m := group(t, Config{SegmentSize: 4096, KeepBytes: 16 << 10, OutboxBytes: 1 << 20}, 3)[0]
	for range 10 {
		if err := m.Write(make([]byte, 4096), 0); err != nil {
			t.Fatal(err)
		}
	}
	const now = 1000 * millisecond
	polls := func(now protocol.Time) (n int) {
		for _, s := range drain(m, now) {
			if kind(s.frame[0]) == creditPoll {
				n++
			}
		}
		return n
	}
	for _, at := range []protocol.Time{now, now + minPollInterval - 1} {
		if n := polls(at); n > 0 || m.own.blockedSince != now || m.own.waiting.Len() == 0 {
			t.Errorf("%d polls after %d ms, %d segments wait", n, (at-now)/millisecond, m.own.waiting.Len())
		}
	}
	if n := polls(now + minPollInterval); n != len(m.own.flow.grantors) {
		t.Errorf("%d polls after %d ms", n, minPollInterval/millisecond)
	}
}

// An offer to the left neighbor that could not be sent is made again, which one that was sent is
// not. Other frames that could not be sent do not matter for that.
func TestFailedOfferIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		kind kind
		want uint64
	}{{offer, 0}, {data, 7}, {grantCredit, 7}} {
		m := group(t, Config{}, 5)[3]
		f := m.own.flow
		f.correction.toldTo = 7
		m.lastSent = send{to: 2, kind: c.kind, flow: f}
		m.SendFailed(1, true)
		if f.correction.toldTo != c.want {
			t.Errorf("kind %d: the neighbor was offered everything before %d", c.kind, f.correction.toldTo)
		}
	}
}

// Messages are no burst until more than minBurst of them follow each other: a pause after exactly
// as many delays none of the next ones.
func TestPauseBeforeABurst(t *testing.T) {
	m := group(t, Config{}, 2)[0]
	now := 1000 * millisecond
	for i := range 2 * minBurst {
		now += microsecond
		if i == minBurst {
			now += 4 * burstGap
		}
		if err := m.Write([]byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, now)
		if m.own.waiting.Len() > 0 {
			t.Fatalf("message %d is held up", i)
		}
	}
}

// Memory is in use while a frame with a part of it waits for a peer whose queue is full.
func TestMemoryInABacklogIsInUse(t *testing.T) {
	m := group(t, Config{}, 3)[0]
	waits, free := &reassemblyBuffer{}, &reassemblyBuffer{}
	m.startBacklog(1, send{to: 1, kind: data, flow: m.own.flow, buffer: waits})
	if !m.sends(waits) || m.sends(free) {
		t.Errorf("in use: %t, and other memory: %t", m.sends(waits), m.sends(free))
	}
}

// A credit speaks for the members below its sender in one view, too.
func TestCreditsCountInTheirView(t *testing.T) {
	m := group(t, Config{}, 3)[0]
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(m, 1)
	for _, view := range []uint64{2, 1} {
		for _, child := range m.own.flow.grantors {
			f := frame{kind: grantCredit, root: 0, incarnation: 1, first: 1, view: view}
			if err := m.Receive(1, child, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if accepted := m.Queues().InFlightBytes == 0; accepted != (view == 1) {
			t.Errorf("granted in view %d, sent in view 1: accepted %t", view, accepted)
		}
	}
}

// A topic is a part of its message, which has as many bytes at most as the config says.
func TestTopicIsAPartOfItsMessage(t *testing.T) {
	const most, topic = 100, "topic"
	room := most - (1 + len(topic))
	m := group(t, Config{MaxMessage: most}, 2)[0]
	if err := m.WriteLabeled(Label{Topic: topic}, make([]byte, room), 0); err != nil {
		t.Errorf("a message of %d bytes with its topic: %v", most, err)
	}
	if err := m.WriteLabeled(Label{Topic: topic}, make([]byte, room+1), 0); err == nil {
		t.Errorf("a message of %d bytes with its topic is accepted", most+1)
	}
	label := Label{Topic: topic, Header: goldenHeader}
	room = most - (1 + 2 + len(goldenHeader) + 1 + len(topic))
	if err := m.WriteLabeled(label, make([]byte, room+1), 0); err == nil {
		t.Errorf("a message of %d bytes with its header is accepted", most+1)
	}
	if err := m.WriteLabeled(label, make([]byte, room), 0); err != nil {
		t.Errorf("a message of %d bytes with its header: %v", most, err)
	}
}

// A burst waits until so much is gathered, to the byte.
func TestGatheredBytesAreBounded(t *testing.T) {
	const size = 128
	m := group(t, Config{}, 2)[0]
	write := func() {
		if err := m.Write(make([]byte, size-headSizeOf(0)-segmentCost), 0); err != nil {
			t.Fatal(err)
		}
	}
	const now = 1000 * millisecond
	for range minBurst {
		write()
		drain(m, now)
		if m.own.waiting.Len() > 0 {
			t.Fatal("a message waits that is not in a burst")
		}
	}
	for i := range maxGathered / size {
		write()
		sent := sentOf(m, now, data)
		if full := i == maxGathered/size-1; (sent > 0) != full {
			t.Fatalf("%d messages are gathered: %d segments are sent", i+1, sent)
		}
	}
}
