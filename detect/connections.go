package detect

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/internal/machine/detection"
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
	tracker *Tracker
	dial    func(ctx context.Context, address string) error // Replaced by tests.
	timeout time.Duration
	timer   *time.Timer // For the machine's deadline.
	ctx     context.Context
	cancel  context.CancelFunc
	probes  sync.WaitGroup
}

var _ Detector = (*Connections)(nil)

// NewConnections makes a detector. It must be closed even if it was not started.
func NewConnections(config ConnectionsConfig) *Connections {
	setDefault(&config.DialTimeout, 200*time.Millisecond)
	setDefault(&config.StartTimeout, 30*time.Second)
	setDefault(&config.MaxDials, 32)
	if config.Dial == nil {
		config.Dial = new(net.Dialer).DialContext
	}
	c := &Connections{
		tracker: newTracker(detection.Config{
			DialTimeout:  protocol.Time(config.DialTimeout),
			StartTimeout: protocol.Time(config.StartTimeout),
			Listening:    config.Listening, MaxDials: config.MaxDials,
		}),
		timeout: config.DialTimeout,
		// The transport's handshake, not the probe, finds out which process listens.
		dial: func(ctx context.Context, address string) error {
			conn, err := config.Dial(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.tracker.afterStep = c.afterStep
	c.timer = time.AfterFunc(time.Hour, func() { c.tracker.step(func(protocol.Time) {}) })
	c.timer.Stop()
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
func (c *Connections) Watch(peers Peers) { c.tracker.Watch(peers) }

// Up reports a connection to a peer. It does not block.
func (c *Connections) Up(rank protocol.Rank, incarnation uint64) { c.tracker.Met(rank, incarnation) }

// Replaced reports that another process answers at the address of a peer: the peer is
// gone. If that other process is watched already, the news is old. It does not block.
func (c *Connections) Replaced(rank protocol.Rank, incarnation uint64) {
	c.tracker.step(func(protocol.Time) { c.tracker.machine.Replaced(rank, incarnation) })
}

// Down reports that the connection to a peer broke, or that a dial failed. It does
// not block.
func (c *Connections) Down(rank protocol.Rank, cause error) {
	c.tracker.step(func(now protocol.Time) { c.tracker.machine.Down(now, rank, cause) })
}

// afterStep begins the probes that are due.
func (c *Connections) afterStep(now protocol.Time) {
	m := c.tracker.machine
	for p, ok := m.Next(now); ok; p, ok = m.Next(now) {
		c.probes.Go(func() { c.probe(p) })
	}
	if due := m.Deadline(); due != protocol.Never {
		c.timer.Reset(time.Duration(due - now))
	}
}

// probe dials a peer to find out whether its process still listens.
func (c *Connections) probe(p detection.Probe) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	err := c.dial(ctx, p.Address)
	c.tracker.step(func(now protocol.Time) { c.tracker.machine.Probed(now, p, resultOf(err), err) })
}

// resultOf returns what the error of a dial shows.
func resultOf(err error) detection.Result {
	switch {
	case err == nil:
		return detection.Reachable
	case errors.Is(err, syscall.ECONNREFUSED):
		return detection.Refused
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EADDRNOTAVAIL):
		return detection.Inconclusive // No descriptor, memory or port is left here.
	default:
		return detection.Silent
	}
}

// Close implements [Detector].
func (c *Connections) Close() error {
	err := c.tracker.Close() // No probe begins after it.
	c.timer.Stop()
	c.cancel()
	c.probes.Wait()
	return err
}
