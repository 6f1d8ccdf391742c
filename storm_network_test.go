package pleach

// Members of a storm are connected in memory, so that hundreds fit one process. Package
// mem knows no views, so this file adds what TCP does for a process that joins: two
// processes connect only when both have a view with both, and a dial that comes too early
// is repeated. Each process also has a socket, so that the probes of detectors find out
// the truth about it. And all processes share two simulated processors: see processors.

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/mem"
)

// stormNetwork connects the members of a storm and counts their frames.
type stormNetwork struct {
	*mem.Network
	cpu    processors
	frames atomic.Uint64
	last   []atomic.Pointer[stormTransport] // the last process of each rank

	mu           sync.Mutex
	incarnations [][]uint64 // of each rank's processes, by their number in mem
}

// stormRedial is how long a process waits before it dials another one again.
const stormRedial = 20 * time.Millisecond

func newStormNetwork(size int) *stormNetwork {
	return &stormNetwork{
		Network: mem.NewNetwork(size, mem.Config{}), last: make([]atomic.Pointer[stormTransport], size),
		cpu:          processors{load: 1},
		incarnations: slices.Repeat([][]uint64{{member.FirstIncarnation}}, size),
	}
}

// open makes the transport of a process. A joiner has an incarnation beyond the first.
func (n *stormNetwork) open(rank protocol.Rank, incarnation uint64, socket net.Listener) *stormTransport {
	t := &stormTransport{
		net: n, rank: rank, incarnation: incarnation, socket: socket,
		dialing: make(map[protocol.Rank]bool),
	}
	if incarnation == member.FirstIncarnation {
		t.Transport = n.Member(rank)
	} else {
		n.mu.Lock()
		n.incarnations[rank] = append(slices.Clip(n.incarnations[rank]), incarnation)
		n.mu.Unlock()
		t.Transport = n.Restart(rank)
	}
	return t
}

// stormTransport is the transport of one process.
type stormTransport struct {
	transport.Transport
	net         *stormNetwork
	rank        protocol.Rank
	incarnation uint64
	socket      net.Listener
	view        atomic.Pointer[transport.View]

	waiting atomic.Int64  // frames for it
	turn    int           // how many of them it has a processor for
	each    time.Duration // how long each of those takes

	mu      sync.Mutex
	dialing map[protocol.Rank]bool
}

// stormSocket listens for probes, whose connections the kernel accepts.
func stormSocket(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// SetView implements [transport.Roster].
func (t *stormTransport) SetView(v transport.View) {
	if v.Member != nil { // otherwise this process is evicted
		t.view.Store(&v)
	}
}

// Start implements [transport.Transport].
func (t *stormTransport) Start(h transport.Handler) error {
	t.net.last[t.rank].Store(t)
	return t.Transport.Start(stormHandler{h, t})
}

// Close implements [transport.Transport].
func (t *stormTransport) Close() error {
	_ = t.socket.Close()
	return t.Transport.Close()
}

// kill ends the process as kill -9 does.
func (t *stormTransport) kill() {
	_ = t.socket.Close()
	t.net.Kill(t.rank)
}

// Send implements [transport.Transport].
func (t *stormTransport) Send(to protocol.Rank, frame []byte) error {
	if t.early(to) {
		t.redial(to)
		return &transport.SendError{To: to, Err: transport.ErrDown}
	}
	err := t.Transport.Send(to, frame)
	if err == nil {
		t.net.last[to].Load().waiting.Add(1)
	}
	return err
}

// early reports whether this process or a peer has no view with both of them yet.
func (t *stormTransport) early(to protocol.Rank) bool {
	view, peer := t.view.Load(), t.net.last[to].Load()
	m, ok := view.Member(to)
	switch {
	case peer == nil:
		return m.Incarnation > member.FirstIncarnation
	case ok && m.Incarnation > peer.incarnation:
		return true // the peer has just joined, and starts
	}
	return peer.incarnation > view.Number || t.incarnation > peer.view.Load().Number
}

// redial connects to a peer once that is no longer too early.
func (t *stormTransport) redial(to protocol.Rank) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dialing[to] {
		return
	}
	t.dialing[to] = true
	time.AfterFunc(stormRedial, func() {
		t.mu.Lock()
		delete(t.dialing, to)
		t.mu.Unlock()
		if _, ok := t.view.Load().Member(to); ok {
			_ = t.Send(to, []byte{heartbeat.FrameType})
		}
	})
}

// stormHandler is the handler of one member.
type stormHandler struct {
	transport.Handler
	*stormTransport
}

// Receive implements [transport.Handler].
func (h stormHandler) Receive(from protocol.Rank, frame []byte) {
	h.net.frames.Add(1)
	t := h.stormTransport
	if t.turn == 0 {
		t.turn, t.each = t.net.cpu.turn(int(t.waiting.Load()))
	}
	t.turn--
	t.waiting.Add(-1)
	time.Sleep(t.each)
	h.Handler.Receive(from, frame)
}

// Up implements [transport.Handler].
func (h stormHandler) Up(peer protocol.Rank, number uint64) {
	h.net.mu.Lock()
	incarnation := h.net.incarnations[peer][number-1]
	h.net.mu.Unlock()
	h.Handler.Up(peer, incarnation)
}

// processors are what all members share. Each frame that a member receives, with all that
// follows from it, occupies one of them for a while of the virtual clock. So a group of any
// size can be overloaded, whatever the host of the test is and does. Members take turns, as
// the goroutines of one process do.
type processors struct {
	mu   sync.Mutex
	free [2]time.Time // when each is free
	busy time.Duration
	load int // so many times as long as usual does a frame take: the rest is other work
}

const (
	// stormFrameCost is how long a frame occupies a processor: a few times as long as on
	// a real one, so that a simulated second takes less than a real one.
	stormFrameCost = 20 * time.Microsecond
	// stormTurn is how long a member's turn is at most.
	stormTurn = 10 * time.Millisecond
)

// turn waits for a processor for some of the frames that wait. It returns how many those
// are and how long each takes.
func (p *processors) turn(waiting int) (frames int, each time.Duration) {
	p.mu.Lock()
	first := &p.free[0]
	if p.free[1].Before(*first) {
		first = &p.free[1]
	}
	now := time.Now()
	if first.Before(now) {
		*first = now
	}
	begins := *first
	each = stormFrameCost * time.Duration(p.load)
	frames = max(1, min(waiting, int(stormTurn/each)))
	*first = first.Add(each * time.Duration(frames))
	p.busy += stormFrameCost * time.Duration(frames)
	p.mu.Unlock()
	time.Sleep(begins.Sub(now))
	return frames, each
}

// used is how long frames have occupied processors.
func (p *processors) used() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// setLoad sets how many times as long as usual a frame takes.
func (p *processors) setLoad(load int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load = load
}
