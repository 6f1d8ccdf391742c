package experiments

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Offers is one message in a group of [stream.Member]s, the very machines that
// processes run, over a simulated network: what it costs that correction offers
// the message instead of carrying it, or the other way round.
//
// A frame occupies its sender's port for Overhead and a nanosecond a byte
// (8 Gbit/s), and its receiver's port for as long, Latency later. A dead process refuses
// connections, as a host does whose process was killed.
type Offers struct {
	// Size is how many members there are.
	Size protocol.Rank
	// Payload is the message's length, Inline up to which length correction
	// carries it; both in bytes.
	Payload, Inline int
	// Latency and Overhead are in nanoseconds.
	Latency, Overhead protocol.Time
	// Dies, if not 0, is the rank that dies just before the message, unknown to all.
	Dies protocol.Rank
}

// OffersResult is what one message took.
type OffersResult struct {
	// Time is until the last live member has it, in nanoseconds.
	Time protocol.Time
	// Bytes and Frames are all that was sent until nothing was left to say.
	Bytes, Frames int64
}

// Warm-up: delays are measured from messages of the group's own. Messages are so
// far apart that a member does not take the tree for merely slow, as it does for a
// while after it was last fed.
const (
	offersWarmup = 5
	offersApart  = 500_000_000
)

// Run sends the message.
func (o *Offers) Run() (OffersResult, error) {
	n := &offersNetwork{Offers: o, now: 1, seats: make([]offersSeat, o.Size)}
	for r := range n.seats {
		m, err := stream.New(stream.Config{Rank: protocol.Rank(r), Size: o.Size, Incarnation: 1, InlineSize: o.Inline})
		if err != nil {
			return OffersResult{}, err
		}
		n.seats[r].Member = m
	}
	for range offersWarmup {
		if _, err := n.send(make([]byte, 64)); err != nil {
			return OffersResult{}, err
		}
	}
	if o.Dies != 0 {
		n.seats[o.Dies].dead = true
	}
	return n.send(make([]byte, o.Payload))
}

// offersNetwork is the group and its network.
type offersNetwork struct {
	*Offers
	now    protocol.Time
	order  int
	seats  []offersSeat
	events offersEvents
	result OffersResult
	got    int // members that have got the message
}

// offersSeat is a member, and when its ports are free.
type offersSeat struct {
	*stream.Member
	dead         bool
	sends, takes protocol.Time
	woken        protocol.Time
}

// send broadcasts from rank 0 and waits until all is quiet.
func (n *offersNetwork) send(payload []byte) (OffersResult, error) {
	began := n.now
	n.result, n.got = OffersResult{}, 0
	if err := n.seats[0].Write(payload, 0); err != nil {
		return OffersResult{}, err
	}
	n.pump(0)
	for len(n.events) > 0 && n.events[0].at < began+offersApart {
		e := heap.Pop(&n.events).(offersEvent)
		n.now = max(n.now, e.at)
		if n.seats[e.to].dead {
			continue
		}
		if e.frame != nil {
			if err := n.seats[e.to].Receive(n.now, e.from, e.frame); err != nil {
				return OffersResult{}, err
			}
		}
		n.pump(e.to)
	}
	n.now = began + offersApart
	others := 0
	for r := range n.seats[1:] {
		if !n.seats[1+r].dead {
			others++
		}
	}
	if n.got != others {
		return OffersResult{}, fmt.Errorf("experiments: %d of %d live members have got the message", n.got, others)
	}
	n.result.Time -= began
	return n.result, nil
}

// pump carries out what a member wants to do now.
func (n *offersNetwork) pump(r protocol.Rank) {
	s := &n.seats[r]
	for {
		to, head, body, ok := s.Next(n.now)
		if !ok {
			break
		}
		n.carry(r, to, slices.Concat(head, body))
	}
	for {
		if _, ok := s.Deliver(n.now); !ok {
			break
		}
		n.got++
		n.result.Time = n.now
	}
	if due := s.Deadline(); due != protocol.Never && (s.woken <= n.now || due < s.woken) {
		s.woken = due
		n.add(offersEvent{at: max(due, n.now+1), to: r})
	}
}

// carry puts a frame under way.
func (n *offersNetwork) carry(from, to protocol.Rank, frame []byte) {
	n.result.Frames++
	sender, receiver := &n.seats[from], &n.seats[to]
	if receiver.dead {
		sender.SendFailed(n.now, false)
		return
	}
	n.result.Bytes += int64(len(frame))
	busy := n.Overhead + protocol.Time(len(frame))
	sender.sends = max(sender.sends, n.now) + busy
	// The first byte arrives Latency after it was sent, the last as long after as
	// the receiver's port takes.
	receiver.takes = max(receiver.takes, sender.sends-busy+n.Latency) + busy
	n.add(offersEvent{at: receiver.takes, to: to, from: from, frame: append([]byte{}, frame...)})
}

func (n *offersNetwork) add(e offersEvent) {
	n.order++
	e.order = n.order
	heap.Push(&n.events, e)
}

// offersEvent is a frame that arrives, or without one a deadline.
type offersEvent struct {
	at       protocol.Time
	order    int
	to, from protocol.Rank
	frame    []byte
}

// offersEvents is a heap, by time.
type offersEvents []offersEvent

func (e offersEvents) Len() int { return len(e) }
func (e offersEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e offersEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *offersEvents) Push(x any)   { *e = append(*e, x.(offersEvent)) }
func (e *offersEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
