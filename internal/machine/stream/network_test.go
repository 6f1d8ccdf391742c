package stream_test

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// network drives members through a simulated network with its own clock: a run takes no
// real time, and is the same for the same seed.
type network struct {
	t       testing.TB
	rng     *rand.Rand
	lent    *rand.Rand // chooses the frames that are read into receive buffers, and the messages that are released
	filled  int        // how many were
	now     protocol.Time
	arrived protocol.Time // when the last frame arrived
	events  events
	members []*host
	faults  faults
	sent    int          // frames
	kinds   map[byte]int // of those, by their first byte
	bytes   int
	judged  int // members were judged, or passed over: see Member.Invariant
}

// faults describes what the network does to frames.
type faults struct {
	drop, duplicate, reorder float64
	latency, jitter          time.Duration
	forwarding               time.Duration // how long a segment takes longer than other frames, at most
}

// host is a member and the network's state of it.
type host struct {
	*stream.Member
	rank      protocol.Rank
	dead      bool
	full      bool    // its peers' queues for it are full
	frozen    []event // frames held while frozen; nil if it is not frozen
	woken     protocol.Time
	delivered map[protocol.Rank][][]byte
	views     map[protocol.Rank][]uint64         // in which they were delivered
	headers   map[protocol.Rank][]header.Encoded // those that messages had
	sentBytes int
	lost      uint64
	deaf      protocol.Time // its program receives nothing before that
}

// event is the arrival of a frame, or a member's deadline.
type event struct {
	at       protocol.Time
	order    int
	to, from protocol.Rank
	frame    []byte // nil for a deadline
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newNetwork(t testing.TB, size int, seed uint64, f faults, configure func(*stream.Config)) *network {
	n := &network{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), lent: rand.New(rand.NewPCG(seed, 2)), faults: f, now: 1,
		kinds: map[byte]int{},
	}
	if f.latency == 0 {
		n.faults.latency, n.faults.jitter = 100*time.Microsecond, 100*time.Microsecond
	}
	for r := range protocol.Rank(size) {
		c := stream.Config{Rank: r, Size: protocol.Rank(size), Incarnation: 1}
		if configure != nil {
			configure(&c)
		}
		m, err := stream.New(c)
		if err != nil {
			t.Fatal(err)
		}
		n.members = append(n.members, &host{
			Member: m, rank: r, delivered: map[protocol.Rank][][]byte{},
			views: map[protocol.Rank][]uint64{}, headers: map[protocol.Rank][]header.Encoded{},
		})
	}
	return n
}

// broadcast writes a message as its root and starts it.
func (n *network) broadcast(root protocol.Rank, data []byte) {
	n.broadcastLabeled(root, stream.Label{}, data)
}

// broadcastLabeled does so for a message with a label.
func (n *network) broadcastLabeled(root protocol.Rank, label stream.Label, data []byte) {
	h := n.members[root]
	write := h.Write
	if label != (stream.Label{}) {
		write = func(piece []byte, remaining int) error { return h.WriteLabeled(label, piece, remaining) }
	}
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), h.SegmentSize())]
		data = data[len(piece):]
		for began := n.now; write(piece, len(data)) != nil; {
			n.pump(h)
			if !n.step() || n.now > began+10*minute {
				n.t.Fatalf("rank %d is blocked for ever at %v: %+v", root, time.Duration(n.now), h.Stats())
			}
		}
		write = h.Write
	}
	n.pump(h)
}

// pump carries out all that a member wants to do now.
func (n *network) pump(h *host) {
	if h.dead || h.frozen != nil {
		return
	}
	for round := 0; round == 0 || h.Deadline() <= n.now; round++ {
		if round > 3 { // what was given up is followed by a request, and so on
			n.t.Fatalf("rank %d at %v is always due: %v", h.rank, time.Duration(n.now), time.Duration(h.Deadline()))
		}
		for to, head, body, ok := h.Next(n.now); ok; to, head, body, ok = h.Next(n.now) {
			n.carry(h, to, slices.Concat(head, body))
		}
	}
	n.judged++
	if n.judged%8 == 0 {
		if err := h.Invariant(); err != nil && !n.t.Failed() {
			n.t.Errorf("rank %d at %v: %v", h.rank, time.Duration(n.now), err)
		}
	}
	for h.deaf <= n.now {
		m, ok := h.Deliver(n.now)
		if !ok {
			break
		}
		if m.Lost > 0 {
			h.lost += m.Lost
			continue
		}
		h.delivered[m.Root] = append(h.delivered[m.Root], bytes.Clone(m.Data))
		if m.Header != "" {
			h.headers[m.Root] = append(h.headers[m.Root], m.Header)
		}
		if n.lent.IntN(2) == 0 {
			h.Release(m.Lease)
		}
		h.views[m.Root] = append(h.views[m.Root], m.View)
	}
	if h.deaf > n.now && h.deaf < protocol.Time(time.Hour) {
		n.add(event{at: h.deaf, to: h.rank})
	}
	if d := h.Deadline(); d != protocol.Never && (h.woken <= n.now || d < h.woken) {
		h.woken = d
		n.add(event{at: max(d, n.now+1), to: h.rank})
	}
}

// carry sends a frame. A dead peer refuses connections at once.
func (n *network) carry(h *host, to protocol.Rank, frame []byte) {
	n.sent++
	n.kinds[frame[0]]++
	n.bytes += len(frame)
	h.sentBytes += len(frame)
	if n.members[to].dead {
		h.SendFailed(n.now, false)
		return
	}
	if n.members[to].full {
		h.SendFailed(n.now, true)
		return
	}
	copies := 1
	if n.rng.Float64() < n.faults.duplicate {
		copies++
	}
	for range copies {
		if n.rng.Float64() < n.faults.drop {
			continue
		}
		took := n.faults.latency + time.Duration(n.rng.Int64N(int64(n.faults.jitter)+1))
		if frame[0] == dataKind {
			took += time.Duration(n.rng.Int64N(int64(n.faults.forwarding) + 1))
		}
		if n.rng.Float64() < n.faults.reorder {
			took *= 10
		}
		n.add(event{at: n.now + protocol.Time(took), to: to, from: h.rank, frame: frame})
	}
}

func (n *network) add(e event) {
	e.order = n.sent
	heap.Push(&n.events, e)
}

// step runs the next event. It reports whether there was one.
func (n *network) step() bool {
	if len(n.events) == 0 {
		return false
	}
	e := heap.Pop(&n.events).(event)
	n.now = max(n.now, e.at)
	h := n.members[e.to]
	switch {
	case h.dead:
	case h.frozen != nil:
		h.frozen = append(h.frozen, e)
	default:
		if e.frame != nil {
			n.arrived = n.now
			if err := n.receive(h, &e, true); err != nil {
				n.t.Fatal(err)
			}
		}
		n.pump(h)
	}
	return true
}

// receive hands a frame over, whole or by a receive buffer, as a transport may do.
// While the frame is read into the buffer, its connection may end, and frames of others
// may arrive.
func (n *network) receive(h *host, e *event, alone bool) error {
	cut := 30 + n.lent.IntN(38) // behind the longest head
	if cut >= len(e.frame) || n.lent.IntN(3) == 0 {
		return h.Receive(n.now, e.from, e.frame)
	}
	buffer := h.ReceiveBuffer(e.from, e.frame[:cut], len(e.frame))
	if n.lent.IntN(4) == 0 {
		copy(buffer, bytes.Repeat([]byte{0xee}, n.lent.IntN(len(buffer)+1)))
		buffer = h.ReceiveBuffer(e.from, e.frame[:cut], len(e.frame))
	}
	if alone && n.lent.IntN(2) == 0 {
		if err := n.receiveOther(h, e.from); err != nil {
			return err
		}
	}
	if buffer == nil {
		return h.Receive(n.now, e.from, e.frame)
	}
	n.filled++
	copy(buffer, e.frame[cut:])
	return h.BufferFilled(n.now, e.from, bytes.Clone(e.frame[:cut]), buffer)
}

// receiveOther hands a member a frame that is in flight from another peer.
func (n *network) receiveOther(h *host, not protocol.Rank) error {
	for i, e := range n.events {
		if e.to == h.rank && e.from != not && e.frame != nil {
			heap.Remove(&n.events, i)
			return n.receive(h, &e, false)
		}
	}
	return nil
}

// run continues until nothing happens any more, except that neighbors that are down are
// tried now and then. It fails if time is up before.
func (n *network) run(until protocol.Time) {
	const quiet = protocol.Time(10 * time.Second)
	for n.arrived = n.now; n.step() && n.now < n.arrived+quiet; {
		if n.now > until {
			n.t.Fatalf("still busy at %v", time.Duration(n.now))
		}
	}
}

// until runs events until a condition holds.
func (n *network) until(holds func() bool) {
	n.t.Helper()
	for limit := n.now + minute; !holds(); {
		if !n.step() || n.now > limit {
			n.t.Fatal("it does not come to hold")
		}
	}
}

func (n *network) freeze(r protocol.Rank) { n.members[r].frozen = []event{} }

// thaw lets a member continue with what has piled up.
func (n *network) thaw(r protocol.Rank) {
	h := n.members[r]
	held := h.frozen
	h.frozen = nil
	for _, e := range held {
		e.at = n.now
		n.add(e)
	}
	n.pump(h)
}

// message returns a message that contains its root and number.
func message(root protocol.Rank, number, size int) []byte {
	b := make([]byte, max(size, 12))
	binary.BigEndian.PutUint32(b, uint32(root))
	binary.BigEndian.PutUint64(b[4:], uint64(number))
	for i := 12; i < len(b); i++ {
		b[i] = byte(i * (number + 7))
	}
	return b
}

// check fails unless every live member has what every live root sent, exactly once and
// in order; of a dead root, a prefix of it.
func (n *network) check(sent map[protocol.Rank][][]byte) {
	n.t.Helper()
	for _, h := range n.members {
		for root, messages := range sent {
			got := h.delivered[root]
			complete := !n.members[root].dead && !h.dead
			if root == h.rank {
				messages = nil
			}
			if len(got) > len(messages) || complete && len(got) != len(messages) {
				n.t.Fatalf("rank %d got %d messages of root %d, not %d (%v)", h.rank, len(got), root, len(messages), h.Stats())
			}
			for i := range got {
				if !bytes.Equal(got[i], messages[i]) {
					n.t.Fatalf("rank %d: message %d of root %d is not what was sent", h.rank, i, root)
				}
			}
		}
	}
}

func (f faults) String() string {
	return fmt.Sprintf("drop %g duplicate %g reorder %g", f.drop, f.duplicate, f.reorder)
}
