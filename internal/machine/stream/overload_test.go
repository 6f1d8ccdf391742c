package stream_test

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// rounds broadcasts from rank 0, each time after all live members have the last
// message, and returns the frames per member and broadcast.
func (n *network) rounds(count int, apart time.Duration) float64 {
	before, live := n.sent, 0
	for _, h := range n.members {
		if !h.dead {
			live++
		}
	}
	for range count {
		i := len(n.members[1].delivered[0])
		n.broadcast(0, message(0, i, 64))
		n.until(func() bool { return n.allHave(i + 1) })
		for until := n.now + protocol.Time(apart); len(n.events) > 0 && n.events[0].at < until; {
			n.step()
		}
	}
	return float64(n.sent-before) / float64(count*live)
}

// A tree that is slow, because its members are overloaded, is not corrected while it is
// only late: every member gets a segment and an offer. When the overload is over, the
// members find out: then a death costs as little time as before it.
func TestSlowTreeIsNotCorrected(t *testing.T) {
	for _, forwarding := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(forwarding.String(), func(t *testing.T) {
			const size = 48
			n := newNetwork(t, size, 7, faults{}, nil)
			n.rounds(20, 5*time.Millisecond)
			n.faults.forwarding = forwarding
			n.rounds(20, 5*time.Millisecond) // they learn
			if got := n.rounds(40, 5*time.Millisecond); got > 2.3 {
				t.Errorf("%.2f frames per member and message while the tree is slow", got)
			}
			n.faults.forwarding = 0
			n.rounds(200, 20*time.Millisecond) // four seconds
			for _, h := range n.members {
				if delay := time.Duration(h.Stats().Delay); delay > 2*time.Millisecond {
					t.Errorf("rank %d still waits for %v", h.rank, delay)
				}
			}
			n.members[1].dead = true // an inner node of the tree
			began, i := n.now, len(n.members[2].delivered[0])
			n.broadcast(0, message(0, i, 64))
			n.until(func() bool { return n.allHave(i + 1) })
			if took := time.Duration(n.now - began); took > 5*time.Millisecond {
				t.Errorf("a message with an unknown death takes %v", took)
			}
		})
	}
}

// receive hands frames to a member.
func receive(t *testing.T, m *stream.Member, now protocol.Time, from protocol.Rank, frames [][]byte) {
	t.Helper()
	for _, frame := range frames {
		if err := m.Receive(now, from, frame); err != nil {
			t.Fatal(err)
		}
	}
}

// pair is the members at ranks 1 and 2 of four. The tree brings segments of rank 0 to
// both, and frames between them pass through the test.
type pair struct {
	t                 *testing.T
	root, left, right *stream.Member
	now               protocol.Time
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, now: 1}
	for rank, m := range []**stream.Member{&p.root, &p.left, &p.right} {
		var err error
		*m, err = stream.New(stream.Config{Rank: protocol.Rank(rank), Size: 4, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// segment returns the next segment of the root.
func (p *pair) segment() [][]byte {
	p.t.Helper()
	if err := p.root.Write([]byte("x"), 0); err != nil {
		p.t.Fatal(err)
	}
	return frames(p.root, p.now)[1][:1]
}

// sent returns the frames of a kind in a direction that a member sends to a peer until
// a time.
func (p *pair) sent(m *stream.Member, to protocol.Rank, flags byte, until protocol.Time) (sent [][]byte) {
	for ; p.now < until; p.now += 100_000 {
		for _, frame := range frames(m, p.now)[to] {
			if offers(frame) && frame[1]&rightwardFlag == flags {
				sent = append(sent, frame)
			}
		}
	}
	return sent
}

// offers reports whether a frame is an offer.
func offers(frame []byte) bool { return frame[0] == offerKind || frame[0] == agedOfferKind }

// Frames as they are on the wire.
const (
	agedOfferKind = 11
	dataKind      = 1
	repairKind    = 2
	offerKind     = 3
	requestKind   = 4
	rightwardFlag = 1 << 4

	millisecond = protocol.Time(time.Millisecond)
)

// A member that the tree reaches after its right neighbor has heard of that already
// when its correction begins. It asks nothing, and needs no tail probe.
func TestOfferBeforeACorrectionCounts(t *testing.T) {
	p := newPair(t)
	segment := p.segment()
	receive(t, p.right, p.now, 0, segment)
	offers := p.sent(p.right, 1, 0, p.now+8*millisecond)
	if len(offers) == 0 {
		t.Fatal("rank 2 makes no offer to its left")
	}
	receive(t, p.left, p.now, 0, segment)
	receive(t, p.left, p.now, 2, offers[:1])
	if asked := p.sent(p.left, 2, rightwardFlag, p.now+500*millisecond); len(asked) > 0 {
		t.Error("rank 1 asks rank 2, which has just offered it everything")
	}
	if probes := p.sent(p.left, 2, 0, p.now+5000*millisecond); len(probes) > 0 {
		t.Errorf("%d probes of rank 2, which has offered everything", len(probes))
	}
}

// A neighbor that is at times early and at times very late makes for measurements that
// do not help. The budget bounds how often it is asked for nothing.
func TestUselessOffersAreBounded(t *testing.T) {
	const corrections, share, ahead = 400, 8, 32
	p := newPair(t)
	asked := 0
	for i := range corrections {
		segment := p.segment()
		receive(t, p.left, p.now, 0, segment)
		if i%2 == 0 {
			receive(t, p.right, p.now, 0, segment)
		}
		for end := p.now + 300*millisecond; p.now < end; p.now += 100_000 {
			if i%2 == 1 && p.now+200*millisecond >= end {
				receive(t, p.right, p.now, 0, segment)
				segment = nil
			}
			for _, frame := range frames(p.left, p.now)[2] {
				if frame[0] == offerKind && frame[1]&rightwardFlag != 0 {
					asked++
				}
				receive(t, p.right, p.now, 1, [][]byte{frame})
			}
			receive(t, p.left, p.now, 2, frames(p.right, p.now)[1])
		}
	}
	if most := ahead + corrections/share; asked > most {
		t.Errorf("%d offers that were not needed in %d corrections: more than %d", asked, corrections, most)
	}
	t.Logf("%d of %d corrections asked", asked, corrections)
}

// A member that was asked has answered, and one that has made its offer needs no answer:
// the left neighbor hears of a segment once.
func TestLeftNeighborHearsOnce(t *testing.T) {
	for _, asksFirst := range []bool{true, false} {
		p := newPair(t)
		segment := p.segment()
		receive(t, p.left, p.now, 0, segment)
		questions := p.sent(p.left, 2, rightwardFlag, p.now+20*millisecond)
		if len(questions) != 1 {
			t.Fatalf("rank 1 asks %d times", len(questions))
		}
		offers := 0
		receive(t, p.right, p.now, 0, segment)
		if asksFirst {
			receive(t, p.right, p.now, 1, questions)
		}
		offers += len(p.sent(p.right, 1, 0, p.now+50*millisecond))
		if !asksFirst {
			receive(t, p.right, p.now, 1, questions)
		}
		offers += len(p.sent(p.right, 1, 0, p.now+50*millisecond))
		if offers != 1 {
			t.Errorf("question before the correction: %v: %d offers", asksFirst, offers)
		}
		// A new connection begins anew: what went over the last one may be lost.
		p.right.Down(p.now, 1)
		p.right.Up(p.now, 1)
		frames(p.right, p.now)
		receive(t, p.right, p.now, 1, questions)
		if len(p.sent(p.right, 1, 0, p.now+1)) == 0 {
			t.Error("no answer over a new connection")
		}
	}
}

// A neighbor that does not answer is passed over after a few times as long as neighbors are
// apart, and each further one after twice as long: a question further out may open a
// connection.
func TestSilentNeighborsArePassedOver(t *testing.T) {
	m, err := stream.New(stream.Config{Rank: 1, Size: 64, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	root, err := stream.New(stream.Config{Size: 64, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Write([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, m, 1, 0, frames(root, 1)[1])
	asked := map[protocol.Rank]protocol.Time{}
	for now := protocol.Time(1); now < 2000*millisecond; now += millisecond / 10 {
		for to, sent := range frames(m, now) {
			for _, frame := range sent {
				if offers(frame) && frame[1]&rightwardFlag != 0 {
					asked[to] = now
				}
			}
		}
	}
	if n := len(asked); n < 8 || n > 10 {
		t.Errorf("%d neighbors asked in two seconds", n)
	}
	if first, second := asked[3]-asked[2], asked[4]-asked[3]; first > 10*millisecond || second < 2*first {
		t.Errorf("passed over after %v and %v", time.Duration(first), time.Duration(second))
	}
}
