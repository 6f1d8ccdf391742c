// Package tcp carries frames over TCP, plain or under TLS 1.3.
//
// There is one connection between two members, opened when one of them first
// sends to the other and kept from then on. Either may dial. If both do at the
// same time, the connection dialed by the lower rank is used.
//
// What is promised, beyond what package transport asks for:
//
//   - A frame that Send has taken goes over the connection there is, or, if
//     there is none, over the next one. It is never moved from one connection to
//     another: all frames of a connection arrive exactly once and in order, and
//     if the connection breaks, those that arrive are the first ones.
//   - Frames that wait while both sides dial are not lost by that.
//   - Between two calls of Up for a peer there is exactly one of Down. A Down
//     without an Up says that dialing has failed.
//   - When a Send has returned [transport.ErrFull], Room follows, after Down if
//     the connection is lost before.
//   - Peers of an open group ([Config.Open]) come, go and move by
//     [Transport.SetPeer], whatever is under way.
//   - A peer is known to be dead when its host says so (at once), or when
//     nothing has been heard for [Config.UserTimeout].
//
// A frame is written by the goroutine that calls Send, or Uncork, if the socket
// takes it at once; that saves a change of goroutine, which costs as much as the
// write. What the socket does not take is left to a goroutine that lives until the queue is
// empty. Handlers are called by the goroutine that reads the connection.
//
// Whoever is not a member yet can [Knock] at one.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// flushTime is how long Close tries to get out what is queued.
const flushTime = 200 * time.Millisecond

// Transport connects one member of a group to the others. It implements
// [transport.Transport].
type Transport struct {
	cfg      Config
	listener net.Listener
	handler  transport.Handler // Set by Start.
	state    atomic.Int32      // One of the states below.

	peers table

	ctx        context.Context // Ends when everything must.
	cancel     context.CancelFunc
	wg         sync.WaitGroup // Every goroutine of the transport.
	count      counters
	handshakes handshakes
	buffers    buffers
	cork       cork
}

const (
	created int32 = iota
	running
	closing
)

var (
	_ transport.Transport    = (*Transport)(nil)
	_ transport.VectorSender = (*Transport)(nil)
)

// New returns a transport that listens already, so that peers can connect
// before Start, but answers nobody before.
func New(cfg Config) (*Transport, error) {
	err := cfg.checkRank()
	if err == nil {
		cfg, err = cfg.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	l := cfg.Listener
	if l == nil {
		l, err = net.Listen("tcp", cfg.Addresses[cfg.Rank])
		if err != nil {
			return nil, fmt.Errorf("tcp: rank %d: %w", cfg.Rank, err)
		}
	}
	cfg.Logger = cfg.Logger.With("group", cfg.Group, "rank", cfg.Rank)
	t := &Transport{cfg: cfg, listener: l, peers: newTable(cfg.ranks())}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Addr returns the address that the transport listens at.
func (t *Transport) Addr() net.Addr { return t.listener.Addr() }

// Start begins to receive.
func (t *Transport) Start(h transport.Handler) error {
	if t.state.Load() != created {
		return errors.New("tcp: Start called twice, or after Close")
	}
	t.handler = h
	t.state.Store(running)
	t.wg.Go(t.accept)
	return nil
}

// Send queues a frame for a peer, and returns at once. Besides what the
// interface names, a [transport.SendError] may wrap a [*wire.SizeError], or say
// that there is no such peer.
func (t *Transport) Send(to protocol.Rank, frame []byte) error { return t.SendVector(to, frame, nil) }

// SendVector sends a frame in two parts.
func (t *Transport) SendVector(to protocol.Rank, head, body []byte) error {
	f := frame{head, body}
	if err := t.send(to, f); err != nil {
		t.count.dropped(err)
		return &transport.SendError{To: to, Err: err}
	}
	t.count.framesSent.Add(1)
	t.count.bytesSent.Add(uint64(f.size()))
	return nil
}

func (t *Transport) send(to protocol.Rank, f frame) error {
	switch {
	case !t.isPeer(to):
		return fmt.Errorf("not a peer of rank %d in a group of %d", t.cfg.Rank, t.cfg.ranks())
	case f.size() > t.cfg.MaxFrame:
		return &wire.SizeError{Size: int64(f.size()), Limit: int64(t.cfg.MaxFrame)}
	}
	return t.peer(to).send(f)
}

// isPeer reports whether a rank may be that of a peer.
func (t *Transport) isPeer(r protocol.Rank) bool {
	return r >= 0 && r < protocol.Rank(t.cfg.ranks()) && r != t.cfg.Rank
}

// peer returns the state kept for a rank, which may be that of a peer.
func (t *Transport) peer(r protocol.Rank) *peer {
	if p := t.peers.get(r); p != nil {
		return p
	}
	p := &peer{t: t, rank: r, out: t.newQueue()}
	if r < protocol.Rank(len(t.cfg.Addresses)) {
		p.address = t.cfg.Addresses[r]
	}
	return t.peers.add(p)
}

func (t *Transport) newQueue() *queue { return &queue{buffers: &t.buffers} }

// Close ends everything. It takes at most a moment (about 200 ms), whatever
// the peers do, unless a handler does not return: it waits for those, and so
// must not be called by one.
func (t *Transport) Close() error {
	if t.state.Swap(closing) == closing {
		t.wg.Wait()
		return nil
	}
	err := t.listener.Close()
	deadline := time.Now().Add(flushTime)
	t.waitUntil(deadline, func(p *peer) bool { return p.flushed() })
	// Ending only our direction lets the peer read everything and end its own.
	// Closing both would throw away what is on its way if the peer has sent
	// something that we did not read.
	t.waitUntil(deadline, func(p *peer) bool { return p.ended() })

	t.cancel()
	for p := range t.peers.all() {
		p.cut()
	}
	t.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("tcp: rank %d: %w", t.cfg.Rank, err)
	}
	return nil
}

// waitUntil waits for all peers, but not for long.
func (t *Transport) waitUntil(deadline time.Time, done func(*peer) bool) {
	for {
		all := true
		for p := range t.peers.all() {
			all = done(p) && all
		}
		if all || time.Now().After(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
