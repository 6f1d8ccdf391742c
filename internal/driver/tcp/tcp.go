// Package tcp is a transport over TCP, plain or with TLS 1.3.
//
// There is one connection between two members, opened when one of them first
// sends to the other. Either may dial. If both dial at the
// same time, the connection of the lower rank is used.
//
// Beyond the promises of package transport:
//
//   - A frame that Send has taken goes over the present connection or, if there is
//     none, over the next one. It never moves from one connection to another: the
//     frames of a connection arrive exactly once and in order, and if it breaks,
//     the frames that arrive are the first ones.
//   - Frames that wait while both sides dial are not lost by that.
//   - Between two calls of Up for a peer there is exactly one of Down. A Down
//     without an Up means that a dial has failed.
//   - After a Send has returned [transport.ErrFull], Writable follows; if the
//     connection is lost first, after Down.
//   - Peers of an open group ([Config.Open]) come, go and change their address by
//     [Transport.SetPeer] at any time.
//   - A peer is down as soon as its host says so, or when its host has been silent
//     for [Config.UserTimeout].
//
// The goroutine that calls Send or Uncork writes the frame itself if the socket
// takes it at once. That saves a change of goroutine, which costs as much as the
// write. A writer goroutine, which lives until the queue is empty, writes what the
// socket does not take. The goroutine that reads a connection calls the handler.
//
// Two members of one host exchange frames through memory that they share, when they have
// many (shared.go). The connection between them stays, and everything above holds.
//
// A process that is not a member can send a [Request] to a member.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// flushTime bounds how long Close flushes the queues.
const flushTime = 200 * time.Millisecond

// Transport connects one member of a group to the others. It implements
// [transport.Transport].
type Transport struct {
	cfg      Config
	listener net.Listener
	handler  transport.Handler // Set by Start.
	state    atomic.Int32      // One of the states below.

	peers       table
	roster      roster
	incarnation uint64 // Of this process. Set before Start.

	ctx       context.Context // Ends when everything must.
	cancel    context.CancelFunc
	wg        sync.WaitGroup // Every goroutine of the transport.
	count     counters
	gate      admission.Gate // Connections of processes that have proved nothing yet.
	members   memberHosts
	newcomers connSet // Peers whose ranks have no address yet.
	buffers   buffers
	cork      cork
	causes    logsuppress.Causes  // What was logged last of own events that repeat.
	refusals  logsuppress.Foreign // What was logged last of connections that were refused.
	local     local
	mapped    atomic.Int64 // Bytes of shared memory.
	awake     awake
	regular   regular
	programs  programs
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

// New returns a transport that listens. Peers can connect before Start, but get no
// answer before.
func New(cfg Config) (*Transport, error) {
	if cfg.Candidate != nil {
		cfg.Listener = cfg.Candidate.cfg.Listener
	}
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
	t := &Transport{cfg: cfg, listener: l, peers: newTable(cfg.ranks()), incarnation: cfg.Incarnation}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if c := cfg.Candidate; c != nil {
		t.ctx, t.cancel = c.ctx, c.cancel
	}
	return t, nil
}

// Addr returns the address at which the transport listens.
func (t *Transport) Addr() net.Addr { return t.listener.Addr() }

// Start implements [transport.Transport].
func (t *Transport) Start(h transport.Handler) error {
	if t.state.Load() != created {
		return errors.New("tcp: Start called twice, or after Close")
	}
	t.handler = h
	t.gate.Visits, t.gate.Waiting, t.gate.Member = t.maxHandshakes(), withinFiles(maxClients), t.isMemberHost
	t.state.Store(running)
	if c := t.cfg.Candidate; c != nil {
		c.handOver(func(s *handshakeConn) { t.receive(s, nil) })
	}
	t.wg.Go(t.accept)
	t.regular.after(t.cfg.IdleTimeout, t.sweepRegularly)
	return nil
}

// Send implements [transport.Transport]. The [transport.SendError] may also wrap
// [ErrFrameSize], or say that there is no such peer.
func (t *Transport) Send(to protocol.Rank, frame []byte) error { return t.SendVector(to, frame, nil) }

// SendVector implements [transport.VectorSender].
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

// isPeer reports whether a rank can be that of a peer.
func (t *Transport) isPeer(r protocol.Rank) bool {
	return r >= 0 && r < protocol.Rank(t.cfg.ranks()) && r != t.cfg.Rank
}

// peer returns the state of a rank for which isPeer holds.
func (t *Transport) peer(r protocol.Rank) *peer {
	if p := t.peers.get(r); p != nil {
		return p
	}
	return t.makePeer(r)
}

func (t *Transport) newQueue() *queue { return &queue{buffers: &t.buffers} }

// Close implements [transport.Transport]. It takes at most about 200 ms, whatever
// the peers do, but it waits for handlers to return. So a handler must not call it.
func (t *Transport) Close() error {
	if t.state.Swap(closing) == closing {
		t.wg.Wait()
		return nil
	}
	t.regular.stop()
	t.programs.check.stop()
	err := t.listener.Close()
	if c := t.cfg.Candidate; c != nil {
		defer c.wg.Wait()
		c.accepting.Wait()
	}
	deadline := time.Now().Add(flushTime)
	t.waitUntil(deadline, func(p *peer) bool { return p.flushed() })
	// Closing only the outgoing direction lets the peer read everything and close
	// its own. Closing both would discard frames in flight if the peer has sent
	// bytes that this side did not read.
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

// waitUntil waits for all peers, up to the deadline.
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
