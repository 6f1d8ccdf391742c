package stream_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Kinds of frames that tests encode and decode themselves.
const (
	dataFrame    = 1
	repairFrame  = 2
	offerFrame   = 3
	requestFrame = 4
	trimmedFrame = 5
)

// rawFrame encodes a frame about the stream of root 0. A payload begins its message.
func rawFrame(kind byte, first uint64, payload string) []byte {
	b := make([]byte, 22, 30+len(payload))
	b[0] = kind
	if payload != "" {
		b[1] = 1
	}
	b[13] = 1 // the incarnation
	binary.BigEndian.PutUint64(b[14:], first)
	if kind != offerFrame { // every segment is a message
		b = binary.BigEndian.AppendUint32(b, uint32(first))
	}
	if kind == dataFrame || kind == repairFrame { // no member has said that it has accepted any
		b = binary.BigEndian.AppendUint32(b, uint32(first))
	}
	return append(b, payload...)
}

// peer drives one member alone, and stands for all others.
type peer struct {
	*stream.Member
	t   *testing.T
	now protocol.Time
}

func newPeer(t *testing.T, c stream.Config) *peer {
	t.Helper()
	m, err := stream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &peer{m, t, 1}
}

func (p *peer) receive(from protocol.Rank, frame []byte) {
	p.t.Helper()
	if err := p.Receive(p.now, from, frame); err != nil {
		p.t.Fatal(err)
	}
}

// run lets time pass, and answers requests.
func (p *peer) run(took time.Duration, answer func(to protocol.Rank, first uint64)) {
	for end := p.now + protocol.Time(took); ; {
		for {
			to, head, _, ok := p.Next(p.now)
			if !ok {
				break
			}
			if head[0] == requestFrame {
				answer(to, binary.BigEndian.Uint64(head[14:]))
			}
		}
		p.now = max(p.Deadline(), p.now+1)
		if p.now > end {
			p.now = end
			return
		}
	}
}

// A hole that no member keeps is given up, although something else was trimmed before
// it: the first reply is about segments that another member has sent since.
func TestHoleBehindAStaleAnswerIsGivenUp(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	p.receive(0, rawFrame(offerFrame, 60, ""))
	first := true
	p.run(time.Minute, func(to protocol.Rank, missing uint64) {
		switch {
		case first: // this member keeps 10 and later, another one a few more
			first = false
			p.receive(to, rawFrame(trimmedFrame, 10, ""))
			for n := range uint64(20) {
				p.receive(3, rawFrame(repairFrame, n, "x"))
			}
		case missing < 50:
			p.receive(to, rawFrame(trimmedFrame, 50, ""))
		default:
			p.receive(to, rawFrame(repairFrame, missing, "x"))
		}
	})
	if s := p.Stats(); s.Lost != 30 || p.Pending() != 31 { // including a notice
		t.Errorf("%d segments given up and %d messages there, want 30 and 31", s.Lost, p.Pending())
	}
}

// A pull goes on while repairs arrive, although each brings less than was requested, as
// through a full queue.
func TestPullGoesOnWhileRepairsArrive(t *testing.T) {
	const segments = 200
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	p.receive(0, rawFrame(offerFrame, segments, ""))
	p.run(5*time.Minute, func(to protocol.Rank, missing uint64) {
		p.receive(to, rawFrame(repairFrame, missing, "x"))
	})
	if p.Pending() < segments {
		t.Errorf("%d of %d messages", p.Pending(), segments)
	}
}

// While repairs take seconds, as under overload, a frozen member asks for them a few times
// only: each request that is too early brings every segment once more.
func TestFrozenMemberAsksForLateRepairsAFewTimes(t *testing.T) {
	const segments, took = 6 * 32, 3 * time.Second
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	p.receive(0, rawFrame(offerFrame, 1, ""))
	p.Freeze()
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: segments}})
	requests := 0
	for first := uint64(0); first < segments; first += 32 {
		requests = 0
		p.run(took, func(protocol.Rank, uint64) { requests++ })
		for i := range uint64(32) {
			p.receive(0, rawFrame(repairFrame, first+i, "x"))
		}
	}
	if !p.Flushed() || requests > 8 {
		t.Errorf("flushed: %v; %d requests for the last repairs", p.Flushed(), requests)
	}
}

// Lost requests do not make a frozen member wait longer and longer: the time until a request
// is repeated is no measure of how long repairs take (Karn & Partridge 1987).
func TestFrozenMemberRepeatsLostRequestsSoon(t *testing.T) {
	const rounds = 20
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	p.receive(0, rawFrame(offerFrame, 1, ""))
	p.Freeze()
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 32 * rounds}})
	requests := 0
	p.run(rounds*time.Second, func(to protocol.Rank, missing uint64) {
		requests++
		if requests%4 != 0 {
			return // lost
		}
		for i := range uint64(32) {
			p.receive(to, rawFrame(repairFrame, missing+i, "x"))
		}
	})
	if !p.Flushed() {
		t.Errorf("not flushed after %d requests", requests)
	}
}

// Whatever the network does and however little each member keeps, a stream does not
// stall: every message is delivered or reported lost in the end.
func TestEveryMessageIsDeliveredOrReportedLost(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			const size = 6
			n := newNetwork(t, size, seed, faults{drop: 0.05, duplicate: 0.05, reorder: 0.2}, func(c *stream.Config) {
				c.KeepBytes = 4<<10 + int(seed*7+uint64(c.Rank)*5)%11<<11
				c.SegmentSize = 1024
			})
			sent := 0
			for range 20 {
				for r := range protocol.Rank(size) {
					switch h := n.members[r]; {
					case h.frozen == nil && n.rng.IntN(4) == 0:
						n.freeze(r)
					case h.frozen != nil && n.rng.IntN(3) == 0:
						n.thaw(r)
					}
				}
				for range 20 {
					if root := protocol.Rank(n.rng.IntN(size)); n.members[root].frozen == nil {
						n.broadcast(root, message(root, sent, []int{64, 1000, 2000, 4000}[n.rng.IntN(4)]))
						sent++
					}
					for range n.rng.IntN(40) {
						n.step()
					}
				}
			}
			for r := range protocol.Rank(size) {
				n.thaw(r)
			}
			n.run(n.now + minute)
			for _, h := range n.members {
				if u := h.Unwritten(); u > 0 {
					t.Errorf("rank %d is blocked for ever with %d segments to send", h.rank, u)
				}
				have, own := h.lost, int(h.Stats().Broadcast)
				for _, messages := range h.delivered {
					have += uint64(len(messages))
				}
				if have != uint64(sent-own) {
					t.Errorf("rank %d: %d delivered or lost, of %d: %+v", h.rank, have, sent-own, h.Stats())
				}
			}
		})
	}
}

// What the inbox refused is pulled when there is room again, even if the program takes
// nothing for so long that the stream has fallen quiet.
func TestRefusedSegmentsArePulledLater(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1, InboxBytes: 500})
	const sent = 20
	for n := range uint64(sent) {
		p.receive(0, rawFrame(dataFrame, n, "x"))
	}
	p.run(time.Minute, func(protocol.Rank, uint64) {})
	got := 0
	for range sent {
		for {
			if _, ok := p.Deliver(p.now); !ok {
				break
			}
			got++
		}
		p.run(time.Second, func(to protocol.Rank, missing uint64) { p.receive(to, rawFrame(repairFrame, missing, "x")) })
	}
	if got != sent {
		t.Errorf("%d messages of %d: %+v", got, sent, p.Stats())
	}
}

// A loss is reported as soon as it is certain, even if the root sends nothing more and
// the message is lost only in part.
func TestLossIsReportedAtOnce(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1, View: 7})
	p.receive(0, rawFrame(dataFrame, 0, "first"))
	p.receive(0, rawFrame(offerFrame, 60, ""))
	p.run(time.Minute, func(to protocol.Rank, missing uint64) {
		if missing < 60 {
			p.receive(to, rawFrame(trimmedFrame, min(60, missing/30*30+30), "")) // in two steps
		}
	})
	if m, ok := p.Deliver(p.now); !ok || string(m.Data) != "first" || m.Lost != 0 {
		t.Errorf("got %+v, %v, want the first message", m, ok)
	}
	if m, ok := p.Deliver(p.now); !ok || m.Data != nil || m.Root != 0 || m.View != 7 || m.Lost != 59 {
		t.Errorf("got %+v, %v, want a notice that 59 messages of root 0 are lost", m, ok)
	}
	if s := p.Stats(); p.Pending() != 0 || s.Delivered != 1 || s.Lost != 59 {
		t.Errorf("%d more pending: %+v", p.Pending(), s)
	}
}

// A member waits for a slow tree, but not after its parent has replied that it no longer
// keeps the segments: the reply is behind all that the parent had sent.
func TestParentsReplyEndsTheWaitForTheTree(t *testing.T) {
	for _, parentReplies := range []bool{true, false} {
		p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
		for n := range uint64(5) {
			p.receive(0, rawFrame(dataFrame, n, "x"))
		}
		p.receive(2, rawFrame(offerFrame, 60, ""))
		p.run(3*time.Second, func(to protocol.Rank, missing uint64) {
			if missing < 60 && (to != 0 || parentReplies) {
				p.receive(to, rawFrame(trimmedFrame, 60, ""))
			}
		})
		if got := p.Stats().Lost == 55; got != parentReplies {
			t.Errorf("parent replies: %v: after three seconds %+v", parentReplies, p.Stats())
		}
	}
}
