package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

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
	stopAt  []int      // by rank; 0: never. The process neither sends nor receives from that event on
	goOn    *sync.Cond // those that are stopped may
	view    uint64
	// incarnations are by rank, and known by rank as each process knows them by its view.
	incarnations []uint64
	known        [][]uint64
	config       engine.Config
	program      func(w Comm) error // of replacements; nil: there are none
	noViews      bool               // no views: the link reports the dead
	sent         int                // messages between tasks
	onSend       func(from, to int) // is told of them
	closed       bool
	first        []*engine.Engine // of the processes of the start
	former       []*engine.Engine // whose processes were replaced
	errs         []error          // of replacements
	running      sync.WaitGroup
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
	came       uint64 // the sender's incarnation
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
	members []engine.Member
}

func newNetwork(t testing.TB, size int, seed uint64) *network {
	t.Helper()
	return newNetworkOf(t, size, seed, engine.Config{})
}

func newNetworkOf(t testing.TB, size int, seed uint64, c engine.Config) *network {
	t.Helper()
	return newNetworkWith(t, size, seed, c, func(int, *engine.Config) {})
}

// newNetworkWith is newNetworkOf for processes whose configs differ.
func newNetworkWith(t testing.TB, size int, seed uint64, c engine.Config,
	change func(rank int, c *engine.Config),
) *network {
	t.Helper()
	n := &network{
		rng: rand.New(rand.NewPCG(seed, 7)), view: 1, config: c,
		events: make([]int, size), killAt: make([]int, size), dead: make([]bool, size),
		incarnations: slices.Repeat([]uint64{1}, size), stopAt: make([]int, size),
	}
	n.goOn = sync.NewCond(&n.mu)
	for r := range size {
		n.known = append(n.known, slices.Clone(n.incarnations))
		c.Rank, c.Size, c.View, c.Link, c.Poison = r, size, 1, &testLink{n, r, 1}, poison
		change(r, &c)
		e, err := engine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		connect(e, size)
		n.engines = append(n.engines, e)
		n.boxes = append(n.boxes, &inbox{wake: sync.NewCond(&n.mu)})
	}
	n.first = slices.Clone(n.engines)
	boxes := slices.Clone(n.boxes)
	for r := range size {
		n.running.Go(func() { n.deliver(r, n.first[r], boxes[r]) })
	}
	return n
}

// connect gives an engine connections to all processes.
func connect(e *engine.Engine, size int) {
	for r := range size {
		e.PeerUp(r)
	}
}

// poison overwrites memory that is released, so that a reader that is left finds garbage.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xaa
	}
}

// close ends all, and waits.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	n.resume()
	all := slices.Concat(n.former, n.engines)
	n.mu.Unlock()
	for _, e := range all {
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
	came uint64 // incarnation
}

func (l *testLink) Send(ctx context.Context, to int, head, body []byte) error {
	return l.SendOwned(ctx, to, head, body, func() {})
}

// SendOwned needs the memory until the receiver has the message.
func (l *testLink) SendOwned(_ context.Context, to int, head, body []byte, release func()) error {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.incarnations[l.rank] != l.came || n.event(l.rank) {
		return errKilled
	}
	if n.dead[to] || n.boxes[to].closed || n.known[l.rank][to] != n.incarnations[to] {
		return fmt.Errorf("rank %d is gone", to)
	}
	if head[0] == taskMessage {
		n.sent++
		if n.onSend != nil {
			n.onSend(l.rank, to)
		}
	}
	b := n.boxes[to]
	b.messages = append(b.messages, delivery{l.rank, l.came, head, body, release})
	b.wake.Signal()
	return nil
}

// event counts, kills if it is time, and reports whether the process is dead.
func (n *network) event(rank int) bool {
	n.events[rank]++
	if n.events[rank] == n.killAt[rank] {
		n.kill(rank)
	}
	for n.stopAt[rank] > 0 && n.events[rank] >= n.stopAt[rank] && !n.dead[rank] {
		n.goOn.Wait()
	}
	return n.dead[rank]
}

// stop sets which ranks are stopped at which event, and for how long.
func (n *network) stop(ranks map[int]int, d time.Duration) {
	if len(ranks) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for rank, at := range ranks {
		n.stopAt[rank] = at
	}
	n.running.Go(func() {
		time.Sleep(d)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.resume()
	})
}

// resume lets stopped processes go on.
func (n *network) resume() {
	clear(n.stopAt)
	n.goOn.Broadcast()
}

// doom sets which ranks are killed at which event. 0 is at once, before any event.
func (n *network) doom(kills map[int]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for rank, at := range kills {
		n.killAt[rank] = at
		if at == 0 {
			n.kill(rank)
		}
	}
}

func (n *network) kill(rank int) {
	if n.dead[rank] {
		return
	}
	n.dead[rank] = true
	n.goOn.Broadcast() // if it is stopped
	for r, b := range n.boxes {
		if n.dead[r] {
			continue
		}
		b.lose(rank, n.rng)
		if n.noViews {
			b.messages = append(b.messages, delivery{from: rank, came: n.incarnations[rank]})
			b.wake.Signal()
		}
	}
	b, killed := n.boxes[rank], n.engines[rank]
	b.closed, b.messages, b.views = true, nil, nil
	b.wake.Signal()
	n.running.Go(func() { killed.End(errKilled) })
	if !n.noViews {
		n.nextView()
	}
	if n.program != nil {
		n.running.Go(func() { n.replace(rank) })
	}
}

// nextView decides a view of the live processes.
func (n *network) nextView() (members []engine.Member) {
	n.view++
	for r, came := range n.incarnations {
		if !n.dead[r] {
			members = append(members, engine.Member{Rank: r, Incarnation: came})
		}
	}
	for _, m := range members {
		b := n.boxes[m.Rank]
		b.views = append(b.views, installation{n.view, members})
		b.wake.Signal()
	}
	return members
}

// replace starts the process of a dead rank anew.
func (n *network) replace(rank int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	c := n.config
	c.Rank, c.Size, c.View, c.Waiting, c.Poison = rank, len(n.engines), 0, n.view+1, poison
	c.Link = &testLink{n, rank, c.Waiting}
	e, err := engine.New(c)
	if err != nil {
		panic(err)
	}
	connect(e, len(n.engines))
	n.dead[rank], n.incarnations[rank] = false, c.Waiting
	b := &inbox{wake: sync.NewCond(&n.mu)}
	n.boxes[rank], n.former = b, append(n.former, n.engines[rank])
	n.engines[rank] = e
	members := n.nextView()
	b.views = nil
	n.install(rank, e, installation{n.view, members})
	n.running.Go(func() { n.deliver(rank, e, b) })
	n.running.Go(func() {
		if err := n.program(Comm(e.Comm())); err != nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.incarnations[rank] == c.Waiting && !n.dead[rank] {
				n.errs = append(n.errs, fmt.Errorf("replacement of rank %d: %w", rank, err))
			}
		}
	})
}

// install installs a view in an engine.
func (n *network) install(rank int, e *engine.Engine, v installation) {
	known := make([]uint64, len(n.engines))
	for _, m := range v.members {
		known[m.Rank] = m.Incarnation
	}
	n.known[rank] = known
	n.mu.Unlock()
	e.InstallMembers(v.number, v.members)
	n.mu.Lock()
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

// take takes the next message of a sender that the receiver knows by its view: of the first
// such sender, or of one that has been waiting less long. Messages of an earlier process of a
// rank are lost with it.
func (b *inbox) take(known []uint64, rng *rand.Rand) (delivery, bool) {
	b.messages = slices.DeleteFunc(b.messages, func(m delivery) bool { return known[m.from] > m.came })
	next := -1
	passed := make(map[int]bool)
	for i, m := range b.messages {
		if passed[m.from] || m.came != known[m.from] && m.head != nil {
			continue
		}
		next, passed[m.from] = i, true
		if rng.IntN(2) == 0 {
			break
		}
	}
	if next < 0 {
		return delivery{}, false
	}
	m := b.messages[next]
	b.messages = slices.Delete(b.messages, next, next+1)
	return m, true
}

// deliver hands an engine what comes for it.
func (n *network) deliver(rank int, e *engine.Engine, b *inbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		for !b.closed && len(b.messages)+len(b.views) == 0 {
			b.wake.Wait()
		}
		if b.closed {
			return
		}
		var m delivery
		ok := false
		if len(b.views) == 0 || n.rng.IntN(3) > 0 {
			m, ok = b.take(n.known[rank], n.rng)
		}
		if !ok && len(b.views) > 0 {
			v := b.views[0]
			b.views = b.views[1:]
			n.install(rank, e, v)
			continue
		}
		if !ok {
			b.wake.Wait() // for the view with the sender
			continue
		}
		if n.event(rank) {
			return
		}
		n.mu.Unlock()
		var err error
		if m.head == nil {
			e.PeerDown(m.from)
		} else {
			err = e.Receive(m.from, m.bytes(e))
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
	for r, e := range n.first {
		all.Go(func() { errs[r] = program(Comm(e.Comm())) })
	}
	all.Wait()
	return errs
}
