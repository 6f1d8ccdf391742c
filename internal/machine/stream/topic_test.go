package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// drain returns what waits in a subscription, and counts the messages that are lost.
func drain(m *stream.Member, id uint64) (data [][]byte, lost uint64) {
	for m.PendingTopic(id) > 0 {
		message, _ := m.DeliverTopic(1, id)
		lost += message.Lost
		if message.Lost == 0 {
			data = append(data, message.Data)
		}
	}
	return data, lost
}

// numbered is a header that numbers the messages of a root, or none: every third message has one.
func numbered(root protocol.Rank, i int) header.Encoded {
	if i%3 != 0 {
		return ""
	}
	h, _ := header.Encode(map[string]string{"message": fmt.Sprintf("%d of %d", i, root)})
	return h
}

// On a bad network, bursts of short messages and long ones among them reach each
// subscription of their topic, in order, and with their headers. The others are dropped.
func TestTopicsOnABadNetwork(t *testing.T) {
	topics := []string{"", "a", "b", strings.Repeat("c", stream.MaxTopic)}
	n := newNetwork(t, 8, 3, faults{drop: 0.1, duplicate: 0.1, reorder: 0.1}, nil)
	var twice [2]uint64
	ids := make([]map[string]uint64, len(n.members))
	for i, h := range n.members {
		ids[i] = map[string]uint64{"a": h.Subscribe("a"), topics[3]: h.Subscribe(topics[3])}
	}
	for i := range twice {
		twice[i] = n.members[7].Subscribe("b") // the only one that gets it
	}
	sent := map[string]map[protocol.Rank][][]byte{}
	headers := map[string]map[protocol.Rank][]header.Encoded{}
	for _, topic := range topics {
		headers[topic] = map[protocol.Rank][]header.Encoded{}
		sent[topic] = map[protocol.Rank][][]byte{}
	}
	for i := range 600 {
		for _, root := range []protocol.Rank{0, 5} {
			topic, size := topics[i/8%4], 40
			if i%40 == 7 {
				size = 150_000
			}
			m := message(root, i, size)
			sent[topic][root] = append(sent[topic][root], m)
			h := numbered(root, i)
			headers[topic][root] = append(headers[topic][root], h)
			n.broadcastLabeled(root, stream.Label{Topic: topic, Header: h}, m)
		}
		n.now += protocol.Time(3e3)
	}
	n.run(minute)
	n.check(sent[""])
	compare := func(h *host, id uint64, topic string) {
		t.Helper()
		got := map[protocol.Rank][][]byte{}
		for h.PendingTopic(id) > 0 {
			m, _ := h.DeliverTopic(n.now, id)
			if i := len(got[m.Root]); m.Header != headers[topic][m.Root][i] {
				t.Fatalf("rank %d: message %d of root %d has the header %q", h.rank, i, m.Root, m.Header)
			}
			got[m.Root] = append(got[m.Root], m.Data)
			if m.Topic != topic || m.Lost > 0 {
				t.Fatalf("rank %d: %q, %d lost", h.rank, m.Topic, m.Lost)
			}
		}
		for root, want := range sent[topic] {
			if root != h.rank && !slices.EqualFunc(got[root], want, bytes.Equal) {
				t.Errorf("rank %d has %d messages of topic %.3q and root %d, want %d", h.rank, len(got[root]), topic, root,
					len(want))
			}
		}
	}
	for i, h := range n.members {
		for topic, id := range ids[i] {
			compare(h, id, topic)
		}
	}
	for _, id := range twice {
		compare(n.members[7], id, "b")
	}
	for _, h := range n.members {
		if left := h.Undelivered(); left != 0 {
			t.Errorf("%d messages are left at rank %d", left, h.rank)
		}
		for root, want := range headers[""] {
			want = slices.DeleteFunc(slices.Clone(want), func(h header.Encoded) bool { return h == "" })
			if root != h.rank && !slices.Equal(h.headers[root], want) {
				t.Errorf("rank %d has %d headers of root %d, want %d", h.rank, len(h.headers[root]), root, len(want))
			}
		}
	}
	if n.filled == 0 {
		t.Error("no frame was read into a receive buffer")
	}
}

// A notice of loss goes to every subscription: the topics of what is lost are not known.
func TestLossIsToldToEverySubscription(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	some, other, told := p.Subscribe("some"), p.Subscribe("other"), 0
	p.receive(0, rawFrame(offerFrame, 60, ""))
	p.run(time.Minute, func(to protocol.Rank, missing uint64) {
		switch {
		case missing < 50:
			p.receive(to, rawFrame(trimmedFrame, 50, ""))
		default:
			frame := rawFrame(repairFrame, missing, "\x04somex")
			frame[1] |= 64
			p.receive(to, frame)
		}
	})
	p.Arrived(func(id uint64) {
		if p.PendingTopic(id) != map[uint64]int{some: 11, other: 1}[id] {
			t.Errorf("%d wait in subscription %d", p.PendingTopic(id), id)
		}
		told++
	})
	if told != 2 {
		t.Errorf("%d subscriptions have got something", told)
	}
	for id, want := range map[uint64]int{some: 10, other: 0} {
		if data, lost := drain(p.Member, id); len(data) != want || lost != 50 {
			t.Errorf("%d messages and %d lost, want %d and 50", len(data), lost, want)
		}
	}
	if m, ok := p.Deliver(p.now); !ok || m.Lost != 50 || p.Undelivered() != 0 {
		t.Errorf("%+v, and %d more", m, p.Undelivered())
	}
}

// All queues share a limit, and one that ends makes room.
func TestFullTopics(t *testing.T) {
	const size, messages = 1000, 30
	root, err := stream.New(stream.Config{Rank: 0, Size: 2, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := newPeer(t, stream.Config{Rank: 1, Size: 2, Incarnation: 1, InboxBytes: 32 << 10})
	one, two := m.Subscribe("t"), m.Subscribe("t")
	for range messages {
		if err := root.WriteLabeled(stream.Label{Topic: "t"}, make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
	}
	root.FlushBatch()
	for _, frame := range frames(root, 1)[1] {
		m.receive(0, frame)
	}
	if !m.Full() || m.Pending() != 0 || m.Undelivered() != 2*messages {
		t.Fatalf("full %t with %d messages", m.Full(), m.Undelivered())
	}
	granted := func() bool {
		return slices.ContainsFunc(frames(m.Member, 1)[0], func(frame []byte) bool { return frame[0] == kindCredit })
	}
	granted() // what was accepted before it was full
	m.Unsubscribe(1, one)
	if !granted() {
		t.Error("a queue that has ended holds up the root")
	}
	if m.Full() || m.PendingTopic(one) != 0 || m.Undelivered() != messages {
		t.Errorf("full %t with %d messages", m.Full(), m.Undelivered())
	}
	var arrived []uint64
	m.Arrived(func(id uint64) { arrived = append(arrived, id) })
	m.Arrived(func(uint64) { t.Error("arrived twice") })
	if !slices.Equal(arrived, []uint64{two}) {
		t.Errorf("%v have got something, want %d", arrived, two)
	}
	if data, _ := drain(m.Member, two); len(data) != messages || m.Full() {
		t.Errorf("%d messages, full %t", len(data), m.Full())
	}
}

// Topics that are cut off, or have a name that is not allowed, are refused.
func TestBrokenTopicsAreRefused(t *testing.T) {
	m, data := fed(t, 1, 1, 1, nil)
	for _, c := range []struct {
		flags   byte
		payload string
	}{
		{1 | 64, ""},
		{1 | 64, "\x00x"},
		{1 | 64, "\x05news"},
		{1 | 64, "\x01\n"},
		{1 | 64, "\x01\xff"},
		{64, "\x01x"},
		{1 | 32 | 64, "\x02\x01x\x01\x01"},
		{1 | 32 | 64, "\x00"},
		{1 | 64, "\x00\x00"},
		{1 | 64, "\x00\x00\x00\x01t"},              // an empty header
		{1 | 64, "\x00\x00\x05\x01k\x00\x00\x01t"}, // a header that is cut off
		{1 | 64, "\x00\x00\x04\x01K\x00\x00\x01t"}, // a key that is not allowed
		{1 | 64, "\x00\x00\x04\x01k\x00\x00"},      // a label without the length of its topic
		{1 | 64, "\x00\x00\x04\x01k\x00\x00\x02t"},
		{1 | 64, "\x00\x00\x04\x01k\x00\x00\x01\n"},
	} {
		frame := append(slices.Clone(data[0][:30]), c.payload...)
		frame[1] = c.flags
		if err := m.Receive(1, 0, frame); !errors.Is(err, stream.ErrFrame) {
			t.Errorf("flags %#x, %q: error %v", c.flags, c.payload, err)
		}
	}
}
