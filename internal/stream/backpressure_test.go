package stream_test

import (
	"testing"

	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

const millisecond = protocol.Time(1e6)

// fed returns a member of four in the tree of root 0, and the frames that its parent
// sends it, one per message. A size above InlineSize keeps the messages out of offers.
func fed(t *testing.T, rank protocol.Rank, messages, size int, configure func(*stream.Config)) (*stream.Member, [][]byte) {
	t.Helper()
	at := func(rank protocol.Rank) *stream.Member {
		c := stream.Config{Rank: rank, Size: 4, Incarnation: 1}
		if configure != nil {
			configure(&c)
		}
		m, err := stream.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	root := at(0)
	var data [][]byte
	for i := range messages {
		if err := root.Write(message(0, i, size), 0); err != nil {
			t.Fatal(err)
		}
		data = append(data, frames(root, 1)[1]...)
	}
	return at(rank), data
}

// receive hands a member a frame of a peer.
func receive(t *testing.T, m *stream.Member, now protocol.Time, from protocol.Rank, frame []byte) {
	t.Helper()
	if err := m.Receive(now, from, frame); err != nil {
		t.Fatal(err)
	}
}

// withKind returns a copy of a frame with another kind, as stream.kind numbers them.
func withKind(frame []byte, kind byte) []byte {
	changed := append([]byte(nil), frame...)
	changed[0] = kind
	return changed
}

// offerOf returns an offer of everything before a segment.
func offerOf(data [][]byte, number int) []byte {
	const offer, headSize = 3, 22
	head := withKind(data[0][:headSize], offer)
	head[1], head[headSize-1] = 0, byte(number)
	return head
}

// A full inbox throttles until a quarter of it is free, or for a second.
func TestFullInboxThrottles(t *testing.T) {
	m, data := fed(t, 1, 8, 2000, func(c *stream.Config) { c.InboxBytes = 8000 })
	for _, frame := range data[:4] {
		receive(t, m, 1, 0, frame)
	}
	if until := m.ThrottledUntil(0); until != 1+1000*millisecond {
		t.Fatalf("with a full inbox throttled until %d", until)
	}
	m.Deliver(2)
	if until := m.ThrottledUntil(0); until == 0 {
		t.Error("not throttled although the inbox is not a quarter free")
	}
	m.Deliver(2)
	if until := m.ThrottledUntil(0); until != 0 {
		t.Errorf("throttled until %d although there is room", until)
	}
	receive(t, m, 3, 0, data[4])
	receive(t, m, 3, 0, data[5])
	m.Freeze()
	if until := m.ThrottledUntil(0); until != 0 {
		t.Errorf("throttled until %d while all wait for the next view", until)
	}
}

// A member waits for a peer that requests what will be trimmed soon, as long as the
// peer goes on requesting.
func TestSlowReceiverIsWaitedFor(t *testing.T) {
	m, data := fed(t, 1, 12, 2000, func(c *stream.Config) { c.KeepBytes = 10 * 2100 })
	for _, frame := range data[:10] {
		receive(t, m, 1, 0, frame)
	}
	ask := func(now protocol.Time, first byte) {
		const request = 4
		frame := append(offerOf(data, int(first)), 0, 0, 0, 0, 0, 0, 0, first+1)
		frame[0] = request
		receive(t, m, now, 3, frame)
	}
	ask(2, 8)
	if until := m.ThrottledUntil(0); until != 0 {
		t.Errorf("throttled until %d for a peer that requests something new", until)
	}
	ask(3, 1)
	if until := m.ThrottledUntil(0); until != 3+500*millisecond {
		t.Errorf("throttled until %d for a slow receiver", until)
	}
	if until := m.ThrottledUntil(3); until != 0 {
		t.Errorf("the slow receiver itself is throttled until %d", until)
	}
	frames(m, 600*millisecond)
	if until := m.ThrottledUntil(0); until != 0 {
		t.Errorf("a slow receiver that requests no more is waited for until %d", until)
	}
	for now := 1000 * millisecond; now < 5000*millisecond; now += 100 * millisecond {
		ask(now, 1)
		frames(m, now)
		if held := m.ThrottledUntil(0) > now; held != (now < 2000*millisecond) {
			t.Errorf("%d ms after it began to ask for the same over and over, it is waited for: %v", now/millisecond-1000, held)
		}
	}
	ask(5000*millisecond, 2)
	if until := m.ThrottledUntil(0); until != 5500*millisecond {
		t.Errorf("a slow receiver that makes progress again is waited for until %d", until)
	}
	ask(5001*millisecond, 250) // there is no such segment
	if until := m.ThrottledUntil(0); until != 5500*millisecond {
		t.Errorf("throttled until %d for a peer that requests what does not exist", until)
	}
	receive(t, m, 5002*millisecond, 3, offerOf(data, 2))
	if until := m.ThrottledUntil(0); until != 5500*millisecond {
		t.Errorf("a slow receiver that reports little progress is waited for until %d", until)
	}
	receive(t, m, 5003*millisecond, 3, offerOf(data, 9))
	if until := m.ThrottledUntil(0); until != 0 {
		t.Errorf("a slow receiver that reports to have caught up is waited for until %d", until)
	}
}

// A member that has pulled, and then gets everything along the tree, reports that to
// the member it asked, which may be waiting for it.
func TestPullReportsProgress(t *testing.T) {
	const request, offer = 4, 3
	m, data := fed(t, 1, 8, 2000, nil)
	receive(t, m, 1, 3, offerOf(data, 8)) // no neighbor
	now := protocol.Time(1)
	told := func(kind byte) (heard []byte) {
		for end := now + 300*millisecond; now < end && heard == nil; now += millisecond {
			for _, frame := range frames(m, now)[3] {
				if correction := frame[1]&(8|16) != 0; frame[0] == kind && !correction {
					heard = frame
				}
			}
		}
		return heard
	}
	if told(request) == nil {
		t.Fatal("did not ask")
	}
	for _, frame := range data {
		receive(t, m, now, 0, frame)
	}
	if heard := told(offer); heard == nil || heard[21] != 8 {
		t.Errorf("the member that was asked has received %v", heard)
	}
}

// The tree also brings what was pulled too early, and then it is forwarded: the
// children have no other source. Whole subtrees had holes before.
func TestTreeCopyIsForwardedAfterPull(t *testing.T) {
	m, data := fed(t, 1, 2, 2000, nil)
	const repair = 2
	receive(t, m, 1, 2, withKind(data[0], repair))
	if sent := frames(m, 1); len(sent[3]) != 0 {
		t.Errorf("what was asked for was passed on: %v", sent)
	}
	for again := range 2 {
		receive(t, m, 2, 0, data[0])
		if sent := frames(m, 2); len(sent[3]) != 1-again {
			t.Errorf("the tree's copy, for the %d. time, was passed on %d times", again+1, len(sent[3]))
		}
	}
}

// A member waits for a tree that has brought something recently: others are ahead
// because a queue is full somewhere, and requests would fill more. With a hole, or
// without the parent, waiting is in vain.
func TestSlowTreeIsWaitedFor(t *testing.T) {
	const now, request = 20 * millisecond, 4
	asks := func(m *stream.Member, until protocol.Time) bool {
		for at := now; at < until; at += millisecond {
			for _, sent := range frames(m, at) {
				for _, frame := range sent {
					if frame[0] == request {
						return true
					}
				}
			}
		}
		return false
	}
	begin := func() (*stream.Member, [][]byte) {
		m, data := fed(t, 1, 8, 2000, nil)
		receive(t, m, now, 0, data[0])
		receive(t, m, now, 2, offerOf(data, 8))
		return m, data
	}
	m, _ := begin()
	if asks(m, now+199*millisecond) {
		t.Error("asks although the tree has just brought something")
	}
	if !asks(m, now+400*millisecond) {
		t.Error("does not ask although the tree brings nothing more")
	}
	m, data := begin()
	receive(t, m, now, 0, data[2])
	if !asks(m, now+50*millisecond) {
		t.Error("does not ask although there is a hole")
	}
	m, _ = begin()
	m.Down(now, 0)
	if !asks(m, now+50*millisecond) {
		t.Error("does not ask although the parent is down")
	}
}

// A member far behind, whose tree is only slow, does not give up what others have
// trimmed: the tree still has it. With a hole, it does.
func TestSlowTreeIsNotGivenUp(t *testing.T) {
	const now, request, trimmed = 20 * millisecond, 4, 5
	lost := func(hole bool) uint64 {
		m, data := fed(t, 1, 8, 2000, nil)
		receive(t, m, now, 0, data[0])
		receive(t, m, now, 2, offerOf(data, 8))
		if hole {
			receive(t, m, now, 0, data[7])
		}
		for at := now; at < now+4000*millisecond; at += millisecond {
			for from, sent := range frames(m, at) {
				for _, frame := range sent {
					if frame[0] == request {
						receive(t, m, at, from, withKind(offerOf(data, 7), trimmed))
					}
				}
			}
		}
		return m.Stats().Lost
	}
	if n := lost(false); n != 0 {
		t.Errorf("gave up %d segments that the tree may bring", n)
	}
	if n := lost(true); n != 6 {
		t.Errorf("gave up %d segments of a hole of 6 that no member keeps", n)
	}
}
