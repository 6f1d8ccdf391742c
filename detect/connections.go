package detect

import (
	"context"
	"sync"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// ConnectionsConfig is how [Connections] looks. Everything is good as its zero
// value.
type ConnectionsConfig struct {
	// DialTimeout is how long a peer's host may take to answer. 0: 200 ms.
	DialTimeout time.Duration
	// StartTimeout is for a peer whose incarnation is not known and which has
	// never been up: for so long it may still have to be started. 0: 30 s.
	StartTimeout time.Duration
	// MaxDials is how many peers are dialed at a time. 0: 32.
	MaxDials int
}

// Connections suspects a peer to which a connection has broken or could not be
// made, if dialing it anew shows that nobody is there. A process that was killed
// is found at once, as its host refuses. A host that does not answer is dialed a
// second time first. A process that is slow or stopped is not suspected as long
// as its host takes connections for it.
//
// It is fed with the news of a transport, through Up and Down. A peer that
// nobody sends to is not looked at: its death shows when somebody does. It only
// reports; it removes nobody. Make one with [NewConnections].
type Connections struct {
	config  ConnectionsConfig
	tracker *tracker
	dial    func(ctx context.Context, address string) error // Tests have others.
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{} // Holds one for each dial under way.

	probes sync.WaitGroup
	mu     sync.Mutex // Guards the rest. The herald's may be taken under it.
	peers  map[protocol.Rank]*link
}

var _ Detector = (*Connections)(nil)

// link is what is known about the connections to one peer.
type link struct {
	since  time.Time          // Watched since then.
	up     bool               // It has been up once, so it has been started.
	cancel context.CancelFunc // nil: nobody is looking at the peer.
	again  bool               // There was more news during the inquiry.
}

// NewConnections makes a detector. It has to be closed even if not started.
func NewConnections(config ConnectionsConfig) *Connections {
	setDefault(&config.DialTimeout, 200*time.Millisecond)
	setDefault(&config.StartTimeout, 30*time.Second)
	setDefault(&config.MaxDials, 32)
	c := &Connections{
		config:  config,
		tracker: newTracker(),
		dial:    dialAndClose,
		slots:   make(chan struct{}, config.MaxDials),
		peers:   map[protocol.Rank]*link{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// setDefault replaces what is not positive.
func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Start begins to report.
func (c *Connections) Start(report func(Report)) error { return c.tracker.start(report) }

// Watch sets who is watched. Inquiries about others end.
func (c *Connections) Watch(peers []Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.peers
	c.peers = make(map[protocol.Rank]*link, len(peers))
	for _, p := range peers {
		l := old[p.Rank]
		if l == nil || p.Incarnation != 0 && !c.tracker.watches(p) {
			l = &link{since: time.Now()}
		} else {
			delete(old, p.Rank)
		}
		c.peers[p.Rank] = l
	}
	for _, l := range old {
		l.stop()
	}
	c.tracker.watch(peers)
}

// Up says that there is a connection to a peer. It never waits.
func (c *Connections) Up(rank protocol.Rank, incarnation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.peers[rank]; l != nil {
		l.up = c.tracker.met(rank, incarnation) || l.up
		l.stop()
	}
}

// Down says that a connection to a peer has broken, or could not be made. It
// never waits.
func (c *Connections) Down(rank protocol.Rank, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.peers[rank]
	if l == nil || c.ctx.Err() != nil {
		return
	}
	if l.cancel != nil {
		l.again = true
		return
	}
	p, _ := c.tracker.watched(rank)
	if s := c.tracker.suspicion(p); s != nil && s.Why != ErrSilent || p.Address == "" {
		return // The process is gone for good, or nothing can be learned.
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(c.ctx)
	c.probes.Go(func() { c.probe(ctx, p, l, cause) })
}

// stop ends an inquiry, if there is one.
func (l *link) stop() {
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	l.again = false
}

// Close ends the detector.
func (c *Connections) Close() error {
	c.mu.Lock()
	c.cancel() // Under the mutex: no inquiry begins after it.
	c.mu.Unlock()
	c.probes.Wait()
	c.tracker.close()
	return nil
}
