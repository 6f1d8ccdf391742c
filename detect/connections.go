package detect

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// ConnectionsConfig configures [Connections]. The zero value is valid.
type ConnectionsConfig struct {
	// DialTimeout is how long a peer's host may take to accept or refuse a
	// connection. If zero, 200 ms.
	DialTimeout time.Duration
	// StartTimeout is how long a peer may take to start: a peer of unknown
	// incarnation that was never connected is not probed before. If zero, 30 s.
	StartTimeout time.Duration
	// Listening says that the sockets of all peers were open before this process was
	// started, and that a peer inherits its own, as under pleach run. A refused
	// connection then means that the peer is gone, even if it was never connected.
	Listening bool
	// MaxDials is how many peers are dialed at a time; further probes wait. If
	// zero, 32.
	MaxDials int
	// Dial opens the connections of probes, as that of a proxy does. If nil, a
	// [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Connections suspects a peer after its connection breaks or a dial fails, if a
// new dial shows that the process is gone. A killed process is found at once,
// because its host refuses the connection. A host that does not answer is dialed
// a second time first. A process that is slow or stopped is not suspected as long
// as its host accepts connections for it.
//
// The events come from a transport, through Up and Down. A peer to which no
// member sends is not probed; its death shows with the next message. Make one
// with [NewConnections].
type Connections struct {
	config  ConnectionsConfig
	tracker *Tracker
	dial    func(ctx context.Context, address string) error // Replaced by tests.
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{} // Holds one for each dial in progress.

	probes sync.WaitGroup
	mu     sync.Mutex // Guards the rest. Taken before the tracker's.
	peers  Peers
	since  time.Time               // Of the first Watch.
	links  map[protocol.Rank]*link // Of the peers that were connected or dialed.
}

var _ Detector = (*Connections)(nil)

// link is the state of the connections to one peer.
type link struct {
	since  time.Time          // Watched since then.
	up     bool               // It was up once, so the peer has been started.
	cancel context.CancelFunc // Ends the probe. nil: none is in progress.
	again  bool               // Another Down came during the probe.
	news   chan struct{}      // Has one after such a Down.
}

func newLink(since time.Time) *link { return &link{since: since, news: make(chan struct{}, 1)} }

// NewConnections makes a detector. It must be closed even if it was not started.
func NewConnections(config ConnectionsConfig) *Connections {
	setDefault(&config.DialTimeout, 200*time.Millisecond)
	setDefault(&config.StartTimeout, 30*time.Second)
	setDefault(&config.MaxDials, 32)
	c := &Connections{
		config:  config,
		tracker: NewTracker(),
		peers:   peerList(nil),
		slots:   make(chan struct{}, config.MaxDials),
		links:   map[protocol.Rank]*link{},
	}
	if c.config.Dial == nil {
		c.config.Dial = new(net.Dialer).DialContext
	}
	c.dial = c.dialAndClose
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// setDefault replaces a value that is not positive.
func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Start implements [Detector].
func (c *Connections) Start(report func(Report)) error { return c.tracker.Start(report) }

// Watch implements [Detector]. Probes of peers that left the view, or moved, end.
func (c *Connections) Watch(peers Peers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rank, l := range c.links {
		before, _ := c.peers.Find(rank)
		if p, ok := peers.Find(rank); !ok || p.Incarnation != 0 && !c.tracker.watches(p) || p.Address != before.Address {
			l.stop()
			delete(c.links, rank)
		}
	}
	if c.since.IsZero() {
		c.since = time.Now()
	} else {
		c.noteNew(peers)
	}
	c.peers = peers
	c.tracker.Watch(peers)
}

// noteNew records since when peers are watched that may not be started yet, if that is
// later than the first Watch.
func (c *Connections) noteNew(peers Peers) {
	for p := range peers.Since(c.peers) {
		if p.Incarnation == 0 {
			c.links[p.Rank] = newLink(time.Now())
		}
	}
}

// link returns the state of the connections to a rank's peer, or nil if it is not
// watched. It makes one if there is none.
func (c *Connections) link(rank protocol.Rank) *link {
	l := c.links[rank]
	if _, ok := c.peers.Find(rank); l == nil && ok {
		l = newLink(c.since)
		c.links[rank] = l
	}
	return l
}

// Up reports a connection to a peer. It does not block.
func (c *Connections) Up(rank protocol.Rank, incarnation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.link(rank); l != nil {
		l.up = c.tracker.Met(rank, incarnation) || l.up
		l.stop()
	}
}

// Replaced reports that another process answers at the address of a peer: the peer is
// gone. If that other process is watched already, the news is old. It does not block.
func (c *Connections) Replaced(rank protocol.Rank, incarnation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := c.tracker.Watched(rank)
	if l := c.link(rank); l != nil && p.is(incarnation) {
		l.stop()
		c.tracker.Suspect(p, ErrReplaced, nil)
	}
}

// Down reports that the connection to a peer broke, or that a dial failed. It does
// not block.
func (c *Connections) Down(rank protocol.Rank, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link(rank)
	if l == nil || c.ctx.Err() != nil {
		return
	}
	if l.cancel != nil {
		l.again = true
		select {
		case l.news <- struct{}{}:
		default:
		}
		return
	}
	p, _ := c.tracker.Watched(rank)
	if s := c.tracker.Suspicion(p); s != nil && s.Why != ErrSilent || p.Address == "" {
		return // The process is gone for good, or cannot be probed.
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(c.ctx)
	c.probes.Go(func() { c.probe(ctx, p, l, cause) })
}

// stop ends the probe, if there is one.
func (l *link) stop() {
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	l.again = false
}

// Close implements [Detector].
func (c *Connections) Close() error {
	c.mu.Lock()
	c.cancel() // Under the mutex: no probe begins after it.
	c.mu.Unlock()
	c.probes.Wait()
	return c.tracker.Close()
}
