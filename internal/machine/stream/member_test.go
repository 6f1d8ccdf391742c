package stream_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

const minute = protocol.Time(time.Minute)

// Every member broadcasts and none fails: all get everything, at about one offer per
// member and burst.
func TestEveryMemberGetsEverything(t *testing.T) {
	for _, size := range []int{1, 2, 3, 8, 33} {
		n := newNetwork(t, size, 1, faults{}, nil)
		sent := map[protocol.Rank][][]byte{}
		for i := range 5 {
			for r := range protocol.Rank(size) {
				m := message(r, i, 10+i*400)
				sent[r] = append(sent[r], m)
				n.broadcast(r, m)
			}
		}
		n.run(minute)
		n.check(sent)
	}
}

// Undetected deaths, at any rank, cost the live members nothing but a little time.
func TestUnknownDead(t *testing.T) {
	for seed := range uint64(60) {
		const size = 24
		n := newNetwork(t, size, seed, faults{}, nil)
		for range 1 + n.rng.IntN(8) {
			n.members[1+n.rng.IntN(size-1)].dead = true
		}
		sent := map[protocol.Rank][][]byte{}
		for i := range 3 {
			m := message(0, i, 1+n.rng.IntN(5000))
			sent[0] = append(sent[0], m)
			n.broadcast(0, m)
		}
		n.run(minute)
		n.check(sent)
	}
}

// The same on a network that loses, duplicates and reorders frames, while
// members die and freeze.
func TestBadNetwork(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			const size = 16
			n := newNetwork(t, size, seed, faults{drop: 0.05, duplicate: 0.05, reorder: 0.05}, nil)
			sent := map[protocol.Rank][][]byte{}
			var frozen []protocol.Rank
			for i := range 120 {
				root := protocol.Rank(n.rng.IntN(size))
				if n.members[root].dead || n.members[root].frozen != nil {
					continue
				}
				size := 1 << n.rng.IntN(15)
				m := message(root, i, size)
				sent[root] = append(sent[root], m)
				n.broadcast(root, m)
				for range n.rng.IntN(200) {
					n.step()
				}
				switch victim := protocol.Rank(1 + n.rng.IntN(15)); {
				case i%30 == 10:
					n.members[victim].dead = true
				case i%30 == 20 && n.members[victim].frozen == nil:
					n.freeze(victim)
					frozen = append(frozen, victim)
				case i%30 == 28:
					for _, r := range frozen {
						n.thaw(r)
					}
					frozen = nil
				}
			}
			for _, r := range frozen {
				n.thaw(r)
			}
			n.run(n.now + 10*minute)
			n.check(sent)
		})
	}
}

// A message of many segments is forwarded as it arrives, and a member that was frozen
// all the while gets it too.
func TestLargeMessage(t *testing.T) {
	n := newNetwork(t, 9, 3, faults{drop: 0.01}, func(c *stream.Config) {
		c.SegmentSize, c.KeepBytes = 4<<10, 4<<20
	})
	n.freeze(4)
	m := message(2, 0, 1<<20)
	n.broadcast(2, m)
	for range 2000 {
		n.step()
	}
	n.thaw(4)
	n.run(minute)
	n.check(map[protocol.Rank][][]byte{2: {m}})
}

// A member that is cut off for longer than others keep the stream is told what it lost,
// and goes on behind it.
func TestFallingBehind(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 40 << 10 })
	n.members[3].dead = true // cut off, as its peers see it
	for i := range 200 {
		n.broadcast(0, message(0, i, 2000))
	}
	n.run(minute)
	n.members[3].dead = false
	for _, h := range n.members[:3] {
		h.Up(n.now, 3)
		n.pump(h)
	}
	n.broadcast(0, message(0, 200, 2000))
	n.run(10 * minute)
	h := n.members[3]
	if got := len(h.delivered[0]); got == 0 || got >= 200 || h.lost+uint64(got) != 201 {
		t.Errorf("%d messages, %d lost, of 201: %+v", got, h.lost, h.Stats())
	}
}

// A program that does not take its messages does not make its member's memory grow:
// what the inbox refuses is pulled later.
func TestSlowProgram(t *testing.T) {
	n := newNetwork(t, 3, 1, faults{}, func(c *stream.Config) {
		c.InboxBytes = 8 << 10
		if c.Rank == 2 {
			c.InboxBytes = 1
		}
	})
	var sent [][]byte
	for i := range 50 {
		sent = append(sent, message(0, i, 3000))
		n.broadcast(0, sent[i])
	}
	n.run(minute)
	n.check(map[protocol.Rank][][]byte{0: sent})
}

// A child whose queue stays full, as behind a stopped process, delays no other member:
// its subtree is fed around it. With room again it gets everything.
func TestFullQueueDelaysNoOther(t *testing.T) {
	n := newNetwork(t, 8, 1, faults{}, nil)
	n.members[1].full = true
	var sent [][]byte
	began := n.now
	for i := range 50 {
		sent = append(sent, message(0, i, 2000))
		n.broadcast(0, sent[i])
		for n.members[0].Unwritten() > 0 {
			n.step()
		}
	}
	n.until(func() bool {
		for _, h := range n.members[2:] {
			if len(h.delivered[0]) < len(sent) {
				return false
			}
		}
		return true
	})
	if took := time.Duration(n.now - began); took > 1100*time.Millisecond {
		t.Errorf("50 messages past a full queue took %v, more than a stall", took)
	}
	n.members[1].full = false
	for _, h := range n.members {
		h.Writable(n.now, 1)
		n.pump(h)
	}
	n.run(minute)
	n.check(map[protocol.Rank][][]byte{0: sent})
}

// What only a dead member had is requested for a while, not forever.
func TestUnobtainable(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, nil)
	// Rank 1 is offered three segments of root 0, and then root 0 is dead.
	if err := n.members[1].Receive(n.now, 0, []byte{
		3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3,
	}); err != nil {
		t.Fatal(err)
	}
	n.members[0].dead = true
	n.pump(n.members[1])
	n.run(minute)
	if asked := n.members[1].Stats().Requests; asked == 0 {
		t.Error("nothing was requested")
	}
}

// Empty messages that no program takes are bounded too, to what fits and one batch.
func TestEmptyMessagesAreBounded(t *testing.T) {
	n := newNetwork(t, 2, 1, faults{}, func(c *stream.Config) { c.InboxBytes = 6400 })
	lazy := n.members[1].Member
	for range 500 {
		if err := n.members[0].Write(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for {
		to, frame, _, ok := n.members[0].Next(n.now)
		if !ok {
			break
		}
		if err := lazy.Receive(n.now, 0, frame); err != nil || to != 1 {
			t.Fatal(to, err)
		}
	}
	if waiting := lazy.Pending(); waiting > 201+128 {
		t.Errorf("%d empty messages wait in an inbox of 6,400 bytes", waiting)
	}
}

// At full rate one correction covers many messages.
func TestCorrectionIsAmortized(t *testing.T) {
	const size, messages = 16, 2000
	n := newNetwork(t, size, 1, faults{}, nil)
	sent := map[protocol.Rank][][]byte{}
	for i := range messages {
		m := message(0, i, 64)
		sent[0] = append(sent[0], m)
		n.broadcast(0, m)
		for n.now < protocol.Time(i)*protocol.Time(20*time.Microsecond) && n.step() {
		}
	}
	n.run(minute)
	n.check(sent)
	var offers uint64
	for _, h := range n.members {
		offers += h.Stats().Offers
	}
	if perMessage := float64(offers) / messages / (size - 1); perMessage > 0.25 {
		t.Errorf("%.2f offers per message and member", perMessage)
	}
}

// A large message costs each member one copy, and offers instead of further ones.
func TestLargePayloadTravelsOnce(t *testing.T) {
	const size, payload = 32, 60 << 10
	n := newNetwork(t, size, 1, faults{}, nil)
	m := message(0, 0, payload)
	n.broadcast(0, m)
	n.run(minute)
	n.check(map[protocol.Rank][][]byte{0: {m}})
	if perMember := float64(n.bytes) / payload / (size - 1); perMember > 1.1 {
		t.Errorf("%.2f payloads per member", perMember)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 'x'})
	f.Add([]byte{3, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9})
	for flags, segment := range map[byte]string{ // a topic, its first segment, a batch, a name that is cut off, none
		1 | 4 | 64: "\x00\x00\x04\x01k\x00\x00\x04newsx", // with a header
		65:         "\x04newsx", 67: "\x00\x00\x00\x09\x04newsx", 97: "\x06\x04newsx\x05\x04news", 193: "\x05news", 64: "x",
	} {
		f.Add(slices.Concat([]byte{
			1, flags, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			0,
		}, []byte(segment)))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := stream.New(stream.Config{Rank: 0, Size: 4, Incarnation: 1, AllTopics: len(frame)%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		news := m.Subscribe("news")
		for now := range protocol.Time(3) {
			if buffer := m.ReceiveBuffer(1, frame[:min(len(frame), 64)], len(frame)); now > 0 && len(buffer) > 0 {
				copy(buffer, frame[64:])
				_ = m.BufferFilled(now, 1, frame[:64], buffer)
			} else {
				_ = m.Receive(now, 1, frame)
			}
			for range 1000 {
				if _, _, _, ok := m.Next(now); !ok {
					break
				}
			}
			for {
				if _, ok := m.Deliver(now); !ok {
					break
				}
			}
			for m.PendingTopic(news) > 0 {
				if got, ok := m.DeliverTopic(now, news); !ok || got.Topic != "news" && got.Lost == 0 {
					t.Fatalf("%+v of a topic, %t", got, ok)
				}
			}
			if n := m.Undelivered(); n != 0 {
				t.Fatalf("%d messages are left", n)
			}
		}
	})
}

// A dead parent costs the first messages a correction. Then another member adopts the
// orphans, and a message is everywhere about as soon as without the dead.
func TestOrphansAreFostered(t *testing.T) {
	latency := func(dead ...int) (last protocol.Time, fostered uint64) {
		const size = 32
		n := newNetwork(t, size, 5, faults{}, nil)
		for _, r := range dead {
			n.freeze(protocol.Rank(r)) // dead, as far as others can tell
		}
		sent := map[protocol.Rank][][]byte{}
		for i := range 40 {
			m := message(0, i, 64)
			sent[0] = append(sent[0], m)
			began := n.now
			n.broadcast(0, m)
			for !n.allHave(i + 1) {
				n.step()
			}
			last = n.now - began
		}
		for _, r := range dead {
			n.thaw(protocol.Rank(r))
		}
		n.run(minute)
		n.check(sent)
		for _, h := range n.members {
			fostered += h.Stats().Grafted
		}
		return last, fostered
	}
	without, none := latency()
	with, some := latency(1, 2, 12)
	if none != 0 || some == 0 || with > 2*without {
		t.Errorf("the last message took %v with three dead (%d fostered), %v without (%d)",
			time.Duration(with), some, time.Duration(without), none)
	}
}

// allHave reports whether all live members have that many messages of root 0.
func (n *network) allHave(messages int) bool {
	for _, h := range n.members[1:] {
		if !h.dead && h.frozen == nil && len(h.delivered[0]) < messages {
			return false
		}
	}
	return true
}

// What the wire format cannot express is refused before any of it is sent.
func TestLimitsOfMessages(t *testing.T) {
	if tooLong := int64(math.MaxUint32) + 1; tooLong <= math.MaxInt {
		if _, err := stream.New(stream.Config{Size: 2, Incarnation: 1, MaxMessage: int(tooLong)}); err == nil {
			t.Errorf("messages of %d bytes are allowed", tooLong)
		}
		if _, err := stream.New(stream.Config{Size: 2, Incarnation: 1, MaxMessage: int(tooLong - 1)}); err != nil {
			t.Error(err)
		}
	}
	m, err := stream.New(stream.Config{Size: 2, Incarnation: 1, MaxMessage: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int{-1, 100, math.MaxInt32} {
		if m.Write([]byte("x"), left) == nil {
			t.Errorf("a segment is taken of which %d bytes follow", left)
		}
	}
	if err := m.Write([]byte("x"), 99); err != nil {
		t.Error(err)
	}
}
