package stream

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// What a program gets of its own messages, and what becomes of those that it has written.

// A program gets its own messages if it wants to, those with a topic where others get theirs, and
// a notice where a view begins.
func TestWhatAProgramGetsOfItself(t *testing.T) {
	for _, c := range []struct {
		config           Config
		main, subscribed []string
	}{
		{Config{}, nil, nil},
		{Config{Begins: true}, []string{"view 2"}, nil},
		{Config{Echo: true}, []string{"plain"}, nil},
		{Config{Echo: true, AllTopics: true}, []string{"plain", "topic: a"}, nil},
		{Config{Replicate: true}, []string{"plain", "view 2"}, []string{"topic: a"}},
		{Config{Replicate: true, AllTopics: true}, []string{"plain", "topic: a", "view 2"}, []string{"topic: a"}},
	} {
		m := group(t, c.config, 2)[0]
		id := m.Subscribe("topic")
		if err := m.Write([]byte("plain"), 0); err != nil {
			t.Fatal(err)
		}
		if err := m.WriteLabeled(Label{Topic: "topic"}, []byte("a"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
		if before, echo := m.Undelivered() > 0, c.config.Echo || c.config.Replicate; before != echo {
			t.Errorf("%+v: it gets something before the view: %t", c.config, before)
		}
		m.Flush(1, m.Freeze())
		if err := m.Install(1, 2, 2, m.roster.members); err != nil {
			t.Fatal(err)
		}
		views := 0
		text := func(got *Message) string {
			switch {
			case got.Begins:
				views++
				return fmt.Sprint("view ", got.View)
			case got.Topic != "":
				return got.Topic + ": " + string(got.Data)
			}
			return string(got.Data)
		}
		var main, subscribed []string
		m.DeliverEach(1, 10, func(got *Message) { main = append(main, text(got)) })
		m.DeliverTopicEach(1, id, 10, func(got *Message) { subscribed = append(subscribed, text(got)) })
		if !slices.Equal(main, c.main) || !slices.Equal(subscribed, c.subscribed) {
			t.Errorf("%+v: %q, and %q by its subscription", c.config, main, subscribed)
		}
		if got := m.Stats().Delivered; got != uint64(len(c.main)+len(c.subscribed)-views) {
			t.Errorf("%+v: %d messages are counted", c.config, got)
		}
	}
}

// A view drops the rest of a message that it cuts in two, and nothing else. The message is written
// again, and counted once.
func TestViewDropsTheRestOfACutMessage(t *testing.T) {
	for _, c := range []struct {
		what     string
		sent     int // segments of the long message that are sent
		rest     int // segments of it that wait
		restarts uint64
	}{
		{"nothing is sent", 0, 3, 0},
		{"all is sent", 3, 0, 0},
		{"a part is sent, and the rest waits", 1, 2, 1},
		{"a part is sent, and the rest is not written", 1, 0, 1},
		{"a part is sent, and some of the rest is written", 1, 1, 1},
	} {
		members := group(t, Config{SegmentSize: 10}, 2)
		m := members[0]
		for i := range c.sent {
			if err := m.Write(make([]byte, 10), 10*(2-i)); err != nil {
				t.Fatal(err)
			}
		}
		drain(m, 1)
		cut := m.Freeze()
		for i := range c.rest {
			if err := m.Write(make([]byte, 10), 10*(2-c.sent-i)); err != nil {
				t.Fatal(err)
			}
		}
		m.Flush(1, cut)
		if err := m.Install(1, 2, 2, m.roster.members); err != nil {
			t.Fatal(err)
		}
		if m.Restarts() != c.restarts {
			t.Errorf("%s: %d restarts", c.what, m.Restarts())
		}
		if waits := map[bool]int{true: 0, false: c.rest}[c.restarts > 0]; m.Unwritten() != waits || m.own.writing &&
			c.restarts > 0 {
			t.Errorf("%s: %d segments wait, and a message is written: %t", c.what, m.Unwritten(), m.own.writing)
		}
		if err := m.Write([]byte("whole"), 0); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		begun := uint32(0)
		for _, s := range drain(m, 1) {
			if f, err := parse(s.frame); err == nil && f.kind == data {
				begun = f.messages
			}
		}
		if want := 1 - uint32(c.restarts); begun != want {
			t.Errorf("%s: %d messages before the next one, want %d", c.what, begun, want)
		}
		if err := m.Invariant(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A message that is being written behind one that a view has cut goes on.
func TestNextMessageIsNotCut(t *testing.T) {
	m := group(t, Config{SegmentSize: 10}, 2)[0]
	write := func(remaining int) {
		if err := m.Write(make([]byte, 10), remaining); err != nil {
			t.Fatal(err)
		}
	}
	write(10)
	drain(m, 1)
	m.Flush(1, m.Freeze())
	write(0)
	write(10) // the next one
	if err := m.Install(1, 2, 2, m.roster.members); err != nil {
		t.Fatal(err)
	}
	if !m.own.writing || m.Unwritten() != 1 || m.Restarts() != 1 {
		t.Errorf("a message is being written: %t, %d segments wait, %d restarts", m.own.writing, m.Unwritten(), m.Restarts())
	}
}

// What a root sends is corrected and probed as what it receives.
func TestRootCorrectsItsOwnStream(t *testing.T) {
	m := group(t, Config{}, 9)[4]
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	const now = 1000 * millisecond
	drain(m, now)
	if f := m.own.flow; f.correction.due != now+m.skew.lead() || f.tailProbe.due != now+tailProbeInterval ||
		f.arrived != (arrival{1, now}) {
		t.Errorf("corrected at %d, probed at %d", f.correction.due, f.tailProbe.due)
	}
	for r := protocol.Rank(8); r >= 0; r-- {
		if r != 4 {
			receiveFrom(t, m, 1, r, 0, 0, 10)
		}
	}
	for i, f := range m.flowsByRoot() {
		if f.root != protocol.Rank(i) {
			t.Errorf("stream %d is that of rank %d", i, f.root)
		}
	}
}

// A member that is alone waits for nobody: nothing of it is in flight, also of what it has sent
// before the others have left.
func TestLastMemberWaitsForNobody(t *testing.T) {
	m := blockedRoot(t)
	cut := m.Freeze()
	m.Flush(1, cut)
	if err := m.Install(1, 2, 2, MemberList{{0, 1}}); err != nil {
		t.Fatal(err)
	}
	for range 4 * initialWindow / (16 << 10) {
		if err := m.Write(make([]byte, 16<<10), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
		if q := m.Queues(); q.InFlightBytes > 0 || q.OutboxBytes > 0 {
			t.Fatalf("%+v", q)
		}
	}
}

// A message that is abandoned does not count toward the length of the next one.
func TestAbandonedMessageIsForgotten(t *testing.T) {
	m := group(t, Config{MaxMessage: 100}, 2)[0]
	if err := m.Write(make([]byte, 60), 40); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteLabeled(Label{Topic: "topic"}, nil, 0); err == nil {
		t.Error("a message with a topic begins within another one")
	}
	m.Trace()
	m.Abandon()
	if err := m.Write(make([]byte, 100), 0); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "a\nb", string(make([]byte, MaxTopic+1))} {
		if m.WriteLabeled(Label{Topic: name}, nil, 0) == nil {
			t.Errorf("%.5q is a topic", name)
		}
	}
	if s := m.Stats(); s.Broadcast != 1 || s.BroadcastBytes != 100 {
		t.Errorf("%d messages of %d bytes are counted", s.Broadcast, s.BroadcastBytes)
	}
	drain(m, 1)
	if len(m.Arrivals()) > 0 {
		t.Error("the mark of an abandoned message is that of the next one")
	}
}

// Write takes what fits into the outbox, and one segment in any case.
func TestOutboxIsBounded(t *testing.T) {
	const size = 100
	m := group(t, Config{OutboxBytes: 2*(size+headSizeOf(0)+segmentCost) + size}, 2)[0]
	m.Freeze() // nothing is sent
	for range 3 {
		if err := m.Write(make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Write(nil, 0); err != ErrBusy {
		t.Errorf("beyond the limit: %v", err)
	}
	other := group(t, Config{OutboxBytes: 2*(size+headSizeOf(0)+segmentCost) + size}, 2)[0]
	other.Freeze()
	for i, want := range []error{nil, nil, ErrBusy} {
		if err := other.Write(make([]byte, size+i/2), 0); err != want {
			t.Errorf("segment %d, the last one a byte too long: %v", i, err)
		}
	}
	tiny := group(t, Config{OutboxBytes: 1}, 2)[0]
	if err := tiny.Write(make([]byte, size), 0); err != nil {
		t.Errorf("into an empty outbox: %v", err)
	}
	long := group(t, Config{SegmentSize: size}, 2)[0]
	if long.Write(make([]byte, size+1), 0) == nil || long.Write(make([]byte, size), 0) != nil {
		t.Error("a segment may have SegmentSize bytes")
	}
}

// A root whose incarnation is not given may start anew: its former stream ends, and what was yet
// to be done for it is not done any more. The former one is not heard any more.
func TestNewIncarnationReplacesTheFormer(t *testing.T) {
	m, err := New(Config{Rank: 1, Size: 4, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	receive := func(incarnation, first uint64, text string) {
		f := frame{
			kind: data, begins: true, root: 0, incarnation: incarnation, first: first, messages: uint32(first),
			segment: []byte(text),
		}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	receive(5, 0, "former")
	receive(5, 2, "behind a hole")
	former := m.flows[0]
	receiveFrom(t, m, 1, 2, 0, 0, 5) // another stream is scheduled, too
	receive(6, 0, "new")
	receive(5, 1, "old")
	if m.flows[0] == former || slices.Contains(m.scheduled, former) || !slices.Contains(m.scheduled, m.flows[2]) {
		t.Errorf("the former stream is followed: %t; %d are scheduled", m.flows[0] == former, len(m.scheduled))
	}
	own := frame{kind: data, begins: true, root: 1, incarnation: 9}
	if err := m.Receive(1, 0, own.append(nil)); err != nil || m.flows[1] != m.own.flow {
		t.Errorf("%v; its own stream is replaced: %t", err, m.flows[1] != m.own.flow)
	}
	if err := m.Invariant(); err != nil {
		t.Error(err)
	}
	var got []string
	m.DeliverEach(1, 10, func(next *Message) { got = append(got, string(next.Data)) })
	if !slices.Equal(got, []string{"new"}) {
		t.Errorf("%q", got)
	}
}
