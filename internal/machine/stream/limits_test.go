package stream

import (
	"slices"
	"testing"
)

// Limits hold to the byte, and what is beyond them is refused.

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		what   string
		config Config
		fits   bool
	}{
		{"one member", Config{Size: 1}, true},
		{"the last rank", Config{Rank: 2, Size: 3}, true},
		{"no member", Config{Size: 0}, false},
		{"a rank beyond", Config{Rank: 3, Size: 3}, false},
		{"a rank below", Config{Rank: -1, Size: 3}, false},
		{"the least limits", Config{
			Size: 1, SegmentSize: 1, InlineSize: 1, MaxMessage: 1, KeepBytes: 1, InboxBytes: 1,
			OutboxBytes: 1,
		}, true},
		{"a limit below zero", Config{Size: 1, KeepBytes: -1}, false},
	} {
		if _, err := New(c.config); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	m, err := New(Config{Size: 1, SegmentSize: 7, MaxMessage: 9})
	if err != nil || m.SegmentSize() != 7 || m.MaxMessage() != 9 || m.config.KeepBytes != 16<<20 {
		t.Errorf("%v: %+v", err, m.config)
	}
}

// A program is slow if more waits for it than InboxBytes, what a frozen member holds included.
// Beyond twice as much, or as much if it prefers to drop, segments are refused.
func TestInboxIsBoundedToTheByte(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		bytes, held     int
		drop            bool
		full, overflows bool
	}{
		{bytes: limit},
		{bytes: limit + 1, full: true},
		{bytes: limit - 10, held: 10},
		{bytes: limit - 10, held: 11, full: true},
		{bytes: 2 * limit, full: true},
		{bytes: 2*limit + 1, full: true, overflows: true},
		{bytes: limit, held: limit + 1, full: true, overflows: true},
		{bytes: limit, drop: true},
		{bytes: limit + 1, drop: true, full: true, overflows: true},
	} {
		m := group(t, Config{InboxBytes: limit, Drop: c.drop}, 2)[0]
		m.inbox.bytes, m.heldBytes = c.bytes, c.held
		if m.Full() != c.full || m.inboxOverflows() != c.overflows || m.inbox.refusing != c.overflows {
			t.Errorf("%+v: full %t, refusing %t", c, m.Full(), m.inbox.refusing)
		}
		if m.inboxFull() != c.full || m.Withholding() != (c.full || c.overflows) {
			t.Errorf("%+v: withholding %t", c, m.Withholding())
		}
	}
}

// What arrives behind a hole is bounded by KeepBytes and one segment, and what is at the hole is not.
func TestSegmentsAheadAreBoundedToTheByte(t *testing.T) {
	const size = 100 + headSize + messagesSize + unacceptedSize + segmentCost
	for keep, want := range map[int]int{3 * size: 4, 3*size - 1: 3} {
		m := group(t, Config{KeepBytes: keep}, 3)[1]
		for number := uint64(1); number < 10; number++ {
			receiveFrom(t, m, 1, 0, number, 0, 100)
		}
		f := m.flows[0]
		if len(f.ahead) != want {
			t.Errorf("%d segments are ahead of a hole, want %d", len(f.ahead), want)
		}
		receiveFrom(t, m, 1, 0, 0, 0, 100)
		if f.next != uint64(want)+1 || f.aheadBytes != 0 {
			t.Errorf("with the hole filled, it goes on at %d", f.next)
		}
	}
}

// A member that is frozen holds what arrives, within the same limit. What the cut needs is accepted
// in any case.
func TestFrozenMemberHoldsWhatFits(t *testing.T) {
	const size = 100 + headSize + messagesSize + unacceptedSize + segmentCost
	for _, cut := range []uint64{0, 8} {
		m := group(t, Config{InboxBytes: 2 * size}, 3)[1]
		m.Freeze()
		if cut > 0 {
			m.Flush(1, []Position{{MemberID{0, 1}, cut, 0}})
		}
		for number := range uint64(10) {
			receiveFrom(t, m, 1, 0, number, 0, 100)
		}
		want := max(5, cut)
		if f := m.flows[0]; f.next != want || m.heldBytes != int(want)*size || !m.Full() || m.Pending() > 0 {
			t.Errorf("cut at %d: it has segments up to %d, and holds %d bytes", cut, f.next, m.heldBytes)
		}
		m.Thaw()
		if m.heldBytes != 0 || m.Pending() != int(want) || m.flows[0].cut != 0 {
			t.Errorf("cut at %d: it goes on with %d messages, and holds %d bytes", cut, m.Pending(), m.heldBytes)
		}
	}
}

// A message that is longer than MaxMessage is not delivered, and the next one is.
func TestLongMessagesAreNotDelivered(t *testing.T) {
	for _, size := range []int{100, 101} {
		m := group(t, Config{MaxMessage: 100}, 2)[1]
		batch := batchOf(string(make([]byte, size)), "b")
		for number, f := range []frame{
			{segment: make([]byte, size)},
			{segment: batch, batch: true},
			{segment: make([]byte, size-1), remaining: 1},
			{segment: make([]byte, 1)},
			{segment: []byte("next")},
		} {
			f.kind, f.begins, f.incarnation, f.first = data, number != 3, 1, uint64(number)
			if err := m.Receive(1, 0, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		var got []int
		m.DeliverEach(1, 10, func(next *Message) { got = append(got, len(next.Data)) })
		want := []int{size, size, 1, size, 4}
		if size > 100 {
			want = []int{1, 4}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d bytes: %v are delivered, want %v", size, got, want)
		}
	}
}

// What a program asks of subscriptions that it has not, or no longer, is answered with nothing.
func TestSubscriptionsThatAreNone(t *testing.T) {
	m := group(t, Config{}, 2)[0]
	id := m.Subscribe("topic")
	m.Unsubscribe(1, id)
	m.Unsubscribe(1, id)
	m.Unsubscribe(1, 77)
	if _, ok := m.DeliverTopic(1, id); ok || m.PendingTopic(id) != 0 {
		t.Error("a subscription that has ended has messages")
	}
	m.DeliverTopicEach(1, id, 1, func(*Message) { t.Error("a message") })
	m.inbox.pushLoss(1, 1, 1)
	if m.Undelivered() != 1 || len(m.inbox.topics.byTopic) > 0 {
		t.Errorf("%d notices of a loss, and %d topics", m.Undelivered(), len(m.inbox.topics.byTopic))
	}
	one, two := m.Subscribe("topic"), m.Subscribe("topic")
	m.Unsubscribe(1, one)
	m.inbox.pushTopic(Message{Label: Label{Topic: "topic"}}, false, nil)
	if m.PendingTopic(two) != 1 || m.PendingTopic(one) != 0 {
		t.Error("with one subscription of a topic, another one has ended")
	}
	if size := (Label{Topic: "topic"}).Size(); size != 6 || (Label{}).Size() != 0 {
		t.Errorf("a topic takes %d bytes", size)
	}
}

// A root's trace of arrivals is bounded.
func TestArrivalsAreBounded(t *testing.T) {
	m := group(t, Config{}, 2)[0]
	for range 2 * maxArrivals {
		m.Trace()
		if err := m.Write([]byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
	}
	if n := len(m.Arrivals()); n != maxArrivals {
		t.Errorf("%d arrivals", n)
	}
}
