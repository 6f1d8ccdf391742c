package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// network drives endpoints over links that are as bad as the numbers say.
type network struct {
	t         *testing.T
	rng       *rand.Rand
	now       protocol.Time
	endpoints []*Endpoint
	flying    []flight
	down      map[[2]protocol.Rank]bool
	// chances, in percent
	drop, duplicate, delay, full, refuse, breaks int
	frames, placed, steps                        int
}

type flight struct {
	at       protocol.Time
	from, to protocol.Rank
	bytes    []byte
}

func view(number uint64, incarnations ...uint64) *membership.View {
	var members []membership.Member
	for r, i := range incarnations {
		if i > 0 {
			members = append(members, membership.Member{Rank: protocol.Rank(r), Incarnation: i})
		}
	}
	return &membership.View{
		Number: number, Slots: protocol.Rank(len(incarnations)),
		Members: membership.MembersOf(members...),
	}
}

func newNetwork(t *testing.T, seed uint64, size int, c Config) *network {
	n := &network{t: t, rng: rand.New(rand.NewPCG(seed, 1)), down: make(map[[2]protocol.Rank]bool)}
	ones := make([]uint64, size)
	for r := range ones {
		ones[r] = 1
	}
	for r := range size {
		c.Rank = protocol.Rank(r)
		endpoint, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		endpoint.Install(0, view(1, ones...))
		n.endpoints = append(n.endpoints, endpoint)
	}
	return n
}

func (n *network) percent(p int) bool { return n.rng.IntN(100) < p }

// step lets everybody send, and then the next frame arrive.
func (n *network) step() {
	for r, c := range n.endpoints {
		n.sendAll(protocol.Rank(r), c)
		n.steps++
		if n.steps%16 == 0 {
			if err := c.check(); err != nil {
				n.t.Fatalf("rank %d: %v", r, err)
			}
		}
	}
	if n.percent(n.breaks) {
		n.breakOne()
	}
	n.arrive()
}

func (n *network) sendAll(r protocol.Rank, c *Endpoint) {
	for {
		to, head, body, ok := c.Next(n.now)
		if !ok {
			return
		}
		frame := slices.Concat(head, body)
		n.frames++
		switch {
		case n.down[pair(r, to)] || n.percent(n.refuse):
			c.SendFailed(n.now, false) // no word of when it can be tried again
		case n.percent(n.full):
			c.SendFailed(n.now, true)
			c.Writable(n.now, to)
		case n.percent(n.drop):
		default:
			n.fly(r, to, frame)
			if n.percent(n.duplicate) {
				n.fly(r, to, frame)
			}
		}
	}
}

func (n *network) fly(from, to protocol.Rank, frame []byte) {
	at := n.now + 1
	if n.percent(n.delay) {
		at += protocol.Time(n.rng.IntN(int(5 * millisecond)))
	}
	n.flying = append(n.flying, flight{at, from, to, frame})
}

func pair(a, b protocol.Rank) [2]protocol.Rank { return [2]protocol.Rank{min(a, b), max(a, b)} }

// breakOne ends a connection with what is on it, or brings it back.
func (n *network) breakOne() {
	a, b := protocol.Rank(n.rng.IntN(len(n.endpoints))), protocol.Rank(n.rng.IntN(len(n.endpoints)))
	if a == b {
		return
	}
	p := pair(a, b)
	n.down[p] = !n.down[p]
	if n.down[p] {
		kept := n.flying[:0]
		for _, f := range n.flying {
			if pair(f.from, f.to) != p {
				kept = append(kept, f)
			}
		}
		n.flying = kept
		n.endpoints[a].Down(n.now, b)
		n.endpoints[b].Down(n.now, a)
		return
	}
	n.endpoints[a].Up(n.now, b)
	n.endpoints[b].Up(n.now, a)
}

// arrive lets the earliest frame arrive, or time pass until something is due.
func (n *network) arrive() {
	first := -1
	for i, f := range n.flying {
		if first < 0 || f.at < n.flying[first].at {
			first = i
		}
	}
	due := protocol.Never
	for _, c := range n.endpoints {
		due = min(due, c.Deadline())
	}
	if first < 0 || n.flying[first].at > due {
		if due != protocol.Never {
			n.now = max(n.now, due)
		}
		return
	}
	f := n.flying[first]
	n.flying = append(n.flying[:first], n.flying[first+1:]...)
	n.now = max(n.now, f.at)
	if err := n.receive(&f); err != nil {
		n.t.Fatalf("rank %d refused a frame of rank %d: %v", f.to, f.from, err)
	}
}

// receive hands a frame over: whole, or placed, as a transport may do with it. A
// connection may end when only some of it has come.
func (n *network) receive(f *flight) error {
	c := n.endpoints[f.to]
	if cut := headSize + n.rng.IntN(64); cut < len(f.bytes) && n.percent(70) {
		for n.percent(20) {
			place := c.ReceiveBuffer(f.from, f.bytes[:cut], len(f.bytes))
			copy(place, bytes.Repeat([]byte{0xee}, n.rng.IntN(len(place)+1)))
		}
		if place := c.ReceiveBuffer(f.from, f.bytes[:cut], len(f.bytes)); place != nil {
			n.placed++
			copy(place, f.bytes[cut:])
			return c.Receive(n.now, f.from, f.bytes[:cut], place)
		}
	}
	return c.Receive(n.now, f.from, f.bytes, nil)
}

// content is a message's, by who sends it to whom and which it is.
func content(from, to protocol.Rank, number, size int) (head, body []byte) {
	head = binary.BigEndian.AppendUint32(nil, uint32(from)<<16|uint32(to))
	head = binary.BigEndian.AppendUint32(head, uint32(number))
	body = make([]byte, size)
	for i := range body {
		body[i] = byte(i + number)
	}
	return head, body
}

func replay(t *testing.T, seed uint64) {
	if t.Failed() {
		t.Logf("replay: PLEACH_SEED=%d go test -run '^%s$' ./internal/machine/p2p", seed, t.Name())
	}
}

// Everything arrives exactly once and in order, whatever the network does.
func TestEverythingArrivesOnceInOrder(t *testing.T) {
	for seed := uint64(1); seed <= 80 && !t.Failed(); seed++ {
		if testutil.Seed.On() {
			seed = uint64(testutil.Seed.Or(0))
		}
		func() {
			defer replay(t, seed)
			rng := rand.New(rand.NewPCG(seed, 2))
			n := newNetwork(t, seed, 2+rng.IntN(3), Config{
				SegmentSize: 64 << rng.IntN(4), WindowBytes: 512 << rng.IntN(4),
				QueueBytes: 8192,
			})
			n.drop, n.duplicate, n.delay = rng.IntN(20), rng.IntN(20), rng.IntN(100)
			n.full, n.refuse, n.breaks = rng.IntN(20), rng.IntN(10), rng.IntN(2)
			exchange(n, rng, 20)
		}()
		if testutil.Seed.On() {
			break
		}
	}
}

// exchange lets everybody send messages to everybody, and checks what arrives.
func exchange(n *network, rng *rand.Rand, messages int) {
	size := len(n.endpoints)
	sent, got, returned := make([]int, size*size), make([]int, size*size), make([]int, size*size)
	for steps := 0; ; steps++ {
		if steps > 300_000 {
			n.t.Fatalf("not over after %d steps: sent %v, got %v", steps, sent, got)
		}
		if steps > 100_000 {
			n.drop, n.full, n.refuse, n.breaks = 0, 0, 0, 0
			for p := range n.down {
				delete(n.down, p)
			}
		}
		left := false
		for i := range sent {
			from, to := protocol.Rank(i/size), protocol.Rank(i%size)
			if from == to {
				continue
			}
			left = left || got[i] < messages
			if sent[i] == messages || !n.percent(10) {
				continue
			}
			head, body := content(from, to, sent[i], rng.IntN(3)*rng.IntN(2000))
			back := func() {
				clear(head) // it is the sender's again
				clear(body)
				returned[i]++
			}
			switch err := n.endpoints[from].SendOwned(to, head, body, back); {
			case err == nil:
				sent[i]++
			case !errors.Is(err, ErrBusy):
				n.t.Fatal(err)
			}
		}
		if !left {
			break
		}
		n.step()
		collect(n, got)
	}
	for range 1000 { // the last acknowledgments
		n.drop, n.full, n.refuse, n.breaks = 0, 0, 0, 0
		clear(n.down)
		n.step()
	}
	for r, c := range n.endpoints {
		if !c.Idle() || c.Deadline() != protocol.Never {
			n.t.Fatalf("rank %d does not know that all has arrived: until %d", r, c.Deadline())
		}
	}
	for i, count := range returned {
		if count != sent[i] {
			n.t.Fatalf("of %d messages from %d to %d, %d were given back", sent[i], i/size, i%size, count)
		}
	}
}

func collect(n *network, got []int) {
	for r, c := range n.endpoints {
		for {
			m, ok := c.Deliver()
			if !ok {
				break
			}
			i := int(m.From)*len(n.endpoints) + r
			head, body := content(m.From, protocol.Rank(r), got[i], len(m.Data)-8)
			if !bytes.Equal(m.Data, append(head, body...)) {
				n.t.Fatalf("rank %d got from %d, in place of its message %d: %x", r, m.From, got[i], m.Data[:8])
			}
			got[i]++
		}
	}
}

// A network that loses nothing is sent nothing twice.
func TestNothingIsSentTwiceWithoutNeed(t *testing.T) {
	n := newNetwork(t, 1, 2, Config{})
	_, body := content(0, 1, 0, 8<<20)
	if err := n.endpoints[0].Send(1, make([]byte, 8), body); err != nil {
		t.Fatal(err)
	}
	for steps := 0; !n.endpoints[0].Idle(); steps++ {
		if steps > 10_000 {
			t.Fatal("not over")
		}
		n.step()
	}
	// 64 segments, and an acknowledgment for each quarter of a window.
	if most := 64 + 8 + 2; n.frames > most {
		t.Errorf("%d frames, %d are enough", n.frames, most)
	}
	if m, ok := n.endpoints[1].Deliver(); !ok || !bytes.Equal(m.Data[8:], body) {
		t.Error("the message is not what was sent")
	}
	if n.placed < 30 {
		t.Errorf("%d segments were placed, of 64", n.placed)
	}
}

func TestGoneAndBusy(t *testing.T) {
	n := newNetwork(t, 1, 3, Config{QueueBytes: 100})
	c := n.endpoints[0]
	returned := 0
	if err := c.SendOwned(1, nil, make([]byte, 1000), func() { returned++ }); err != nil {
		t.Errorf("an empty queue takes any message: %v", err)
	}
	if err := c.Send(1, nil, []byte{1}); !errors.Is(err, ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
	c.Install(0, view(2, 1, 0, 1))
	var gone *GoneError
	if err := c.Send(1, nil, nil); !errors.As(err, &gone) || gone.Rank != 1 || gone.View != 2 {
		t.Errorf("one who is gone: %v", err)
	}
	if !c.Idle() {
		t.Error("what was for one who is gone still waits")
	}
	if returned != 1 {
		t.Errorf("what was for one who is gone was given back %d times", returned)
	}
	n.step()
}

// A new incarnation starts anew: frames of and for the old one are void.
func TestNewIncarnationStartsAnew(t *testing.T) {
	n := newNetwork(t, 1, 2, Config{})
	send := func(from, to protocol.Rank, text string) {
		t.Helper()
		if err := n.endpoints[from].Send(to, nil, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 1, "one")
	send(1, 0, "two")
	for range 20 {
		n.step()
	}
	old := n.endpoints[1]
	send(1, 0, "late")
	_, head, body, _ := old.Next(n.now)
	late := slices.Concat(head, body)

	next, err := New(Config{Rank: 1})
	if err != nil {
		t.Fatal(err)
	}
	n.endpoints[1] = next
	next.Install(n.now, view(2, 1, 2))
	n.endpoints[0].Install(n.now, view(2, 1, 2))
	n.endpoints[0].Deliver()
	if err := n.endpoints[0].Receive(n.now, 1, late, nil); err != nil {
		t.Fatal(err)
	}
	send(0, 1, "three")
	send(1, 0, "four")
	for range 40 {
		n.step()
	}
	for r, want := range []string{"four", "three"} {
		if m, ok := n.endpoints[r].Deliver(); !ok || string(m.Data) != want {
			t.Errorf("rank %d got %q, want %q", r, m.Data, want)
		}
		if m, ok := n.endpoints[r].Deliver(); ok {
			t.Errorf("rank %d got %q too", r, m.Data)
		}
	}
}

// A message for a process that was never heard of does not reach the next process of
// its rank, which the transport may connect to at the same address.
func TestSuccessorGetsNothingOfItsPredecessor(t *testing.T) {
	n := newNetwork(t, 1, 2, Config{})
	if err := n.endpoints[0].Send(1, nil, []byte("for the predecessor")); err != nil {
		t.Fatal(err)
	}
	_, head, body, _ := n.endpoints[0].Next(n.now)
	frame := slices.Concat(head, body)
	successor, err := New(Config{Rank: 1})
	if err != nil {
		t.Fatal(err)
	}
	successor.Install(n.now, view(3, 1, 3))
	if err := successor.Receive(n.now, 0, frame, nil); err != nil {
		t.Fatal(err)
	}
	if m, ok := successor.Deliver(); ok {
		t.Errorf("it got %q", m.Data)
	}
}

func FuzzReceive(f *testing.F) {
	head := (&frame{kind: data, first: true, last: true, length: 3, from: 1, to: 1}).appendHead(nil)
	f.Add(append(head, "abc"...), (&frame{kind: poll, from: 1, to: 1, number: 5}).appendHead(nil))
	f.Add((&frame{kind: pollReply, from: 1, to: 1, next: 1, number: 5}).appendHead(nil), []byte{FrameType})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c, _ := New(Config{Rank: 0, MaxMessage: 1 << 10})
		c.Install(0, view(1, 1, 1))
		_ = c.Send(1, []byte("x"), make([]byte, 200))
		for i, bytes := range [][]byte{a, b, a} {
			_, _, _, _ = c.Next(protocol.Time(i))
			head, rest := bytes[:min(len(bytes), 64)], bytes[min(len(bytes), 64):]
			body := c.ReceiveBuffer(1, head, len(bytes))
			if copy(body, rest) == 0 {
				head, body = bytes, nil
			}
			if err := c.Receive(protocol.Time(i), 1, head, body); err != nil && !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			for {
				m, ok := c.Deliver()
				if !ok {
					break
				}
				if len(m.Data) > len(a)+len(b)+len(a) {
					t.Fatalf("%d bytes from nowhere", len(m.Data))
				}
			}
		}
	})
}

func ExampleEndpoint() {
	a, _ := New(Config{Rank: 0})
	b, _ := New(Config{Rank: 1})
	two := &membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(membership.Member{Rank: 0, Incarnation: 1},
		membership.Member{Rank: 1, Incarnation: 1})}
	a.Install(0, two)
	b.Install(0, two)
	_ = a.Send(1, []byte("hello, "), []byte("neighbor"))
	for {
		_, head, body, ok := a.Next(1)
		if !ok {
			break
		}
		_ = b.Receive(1, 0, slices.Concat(head, body), nil)
	}
	m, _ := b.Deliver()
	fmt.Printf("%s\n", m.Data)
	// Output: hello, neighbor
}

// A body that is not where it was placed, because the message has moved since, is
// taken all the same.
func TestBodyOutsideTheReceiveBuffer(t *testing.T) {
	n := newNetwork(t, 1, 2, Config{SegmentSize: 500})
	head, body := content(0, 1, 0, 2000)
	if err := n.endpoints[0].Send(1, head, body); err != nil {
		t.Fatal(err)
	}
	to := n.endpoints[1]
	for {
		_, start, rest, ok := n.endpoints[0].Next(1)
		if !ok {
			break
		}
		frame := slices.Concat(start, rest)
		cut := min(45, len(frame)) // in the piece
		_ = to.ReceiveBuffer(0, frame[:cut], len(frame))
		if err := to.Receive(1, 0, frame[:cut], bytes.Clone(frame[cut:])); err != nil {
			t.Fatal(err)
		}
	}
	if m, ok := to.Deliver(); !ok || !bytes.Equal(m.Data, slices.Concat(head, body)) {
		t.Error("it is not what was sent")
	}
}
