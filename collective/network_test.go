package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

var errKilled = errors.New("killed by the test")

// network connects engines of one process, and kills them where a test says: at a process's
// n-th event, which is a message sent or received. A killed process loses what it has not
// received, and some of what it has sent last. The others install the next view at different
// times.
type network struct {
	mu      sync.Mutex
	rng     *rand.Rand
	engines []*engine.Engine
	boxes   []*inbox
	events  []int // by rank
	killAt  []int // by rank; 0: never
	dead    []bool
	view    uint64
	noViews bool // no views: the link reports the dead
	sent    int  // messages between tasks
	running sync.WaitGroup
}

// inbox is what is on its way to a process.
type inbox struct {
	wake     *sync.Cond
	messages []delivery
	views    []installation
	closed   bool
}

type delivery struct {
	from       int
	head, body []byte
	release    func()
}

// bytes returns the message in memory of its receiver's.
func (d *delivery) bytes(e *engine.Engine) []byte {
	b := e.Buffer(len(d.head) + len(d.body))
	copy(b[copy(b, d.head):], d.body)
	d.release()
	return b
}

type installation struct {
	number  uint64
	members []int
}

func newNetwork(t testing.TB, size int, seed uint64) *network {
	t.Helper()
	return newNetworkOf(t, size, seed, engine.Config{})
}

func newNetworkOf(t testing.TB, size int, seed uint64, c engine.Config) *network {
	t.Helper()
	n := &network{
		rng: rand.New(rand.NewPCG(seed, 7)), view: 1,
		events: make([]int, size), killAt: make([]int, size), dead: make([]bool, size),
	}
	for r := range size {
		c.Rank, c.Size, c.View, c.Link, c.Poison = r, size, 1, &testLink{n, r}, poison
		e, err := engine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		n.engines = append(n.engines, e)
		n.boxes = append(n.boxes, &inbox{wake: sync.NewCond(&n.mu)})
	}
	for r := range size {
		n.running.Go(func() { n.deliver(r) })
	}
	return n
}

// poison overwrites memory that is released, so that a reader that is left finds garbage.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xaa
	}
}

// close ends all, and waits.
func (n *network) close() {
	for _, e := range n.engines {
		e.Close()
	}
	n.mu.Lock()
	for _, b := range n.boxes {
		b.closed = true
		b.wake.Signal()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// taskMessage is the first byte of a message between tasks.
const taskMessage = 1

type testLink struct {
	n    *network
	rank int
}

func (l *testLink) Send(ctx context.Context, to int, head, body []byte) error {
	return l.SendOwned(ctx, to, head, body, func() {})
}

// SendOwned needs the memory until the receiver has the message.
func (l *testLink) SendOwned(_ context.Context, to int, head, body []byte, release func()) error {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.event(l.rank) {
		return errKilled
	}
	if n.dead[to] || n.boxes[to].closed {
		return fmt.Errorf("rank %d is gone", to)
	}
	if head[0] == taskMessage {
		n.sent++
	}
	b := n.boxes[to]
	b.messages = append(b.messages, delivery{l.rank, head, body, release})
	b.wake.Signal()
	return nil
}

// event counts, kills if it is time, and reports whether the process is dead.
func (n *network) event(rank int) bool {
	if n.events[rank]++; n.events[rank] == n.killAt[rank] {
		n.kill(rank)
	}
	return n.dead[rank]
}

// doom sets which ranks are killed at which event. 0 is at once, before any event.
func (n *network) doom(kills map[int]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for rank, at := range kills {
		if n.killAt[rank] = at; at == 0 {
			n.kill(rank)
		}
	}
}

func (n *network) kill(rank int) {
	if n.dead[rank] {
		return
	}
	n.dead[rank] = true
	n.view++
	var members []int
	for r := range n.engines {
		if !n.dead[r] {
			members = append(members, r)
		}
	}
	for _, r := range members {
		b := n.boxes[r]
		b.lose(rank, n.rng)
		if n.noViews {
			b.messages = append(b.messages, delivery{from: rank})
			b.wake.Signal()
			continue
		}
		b.views = append(b.views, installation{n.view, members})
		b.wake.Signal()
	}
	b := n.boxes[rank]
	b.closed, b.messages, b.views = true, nil, nil
	b.wake.Signal()
	n.running.Go(func() { n.engines[rank].End(errKilled) })
}

// lose drops some of the last messages of a process.
func (b *inbox) lose(from int, rng *rand.Rand) {
	for i := len(b.messages) - 1; i >= 0; i-- {
		if b.messages[i].from != from {
			continue
		}
		if rng.IntN(2) == 0 {
			return
		}
		b.messages = slices.Delete(b.messages, i, i+1)
	}
}

// deliver hands an engine what comes for it.
func (n *network) deliver(rank int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[rank]
	for {
		for !b.closed && len(b.messages)+len(b.views) == 0 {
			b.wake.Wait()
		}
		if b.closed {
			return
		}
		if len(b.views) > 0 && (len(b.messages) == 0 || n.rng.IntN(3) == 0) {
			v := b.views[0]
			b.views = b.views[1:]
			n.mu.Unlock()
			n.engines[rank].Install(v.number, v.members)
			n.mu.Lock()
			continue
		}
		m := b.messages[0]
		b.messages = b.messages[1:]
		if n.event(rank) {
			return
		}
		n.mu.Unlock()
		var err error
		if m.head == nil {
			n.engines[rank].PeerDown(m.from)
		} else {
			err = n.engines[rank].Receive(m.from, m.bytes(n.engines[rank]))
		}
		n.mu.Lock()
		if err != nil {
			panic(fmt.Sprintf("rank %d refused a message of rank %d: %v", rank, m.from, err))
		}
	}
}

// each runs a program as every process, and returns their errors.
func (n *network) each(program func(w Comm) error) []error {
	errs := make([]error, len(n.engines))
	var all sync.WaitGroup
	for r, e := range n.engines {
		all.Go(func() { errs[r] = program(Comm(e.Comm())) })
	}
	all.Wait()
	return errs
}
