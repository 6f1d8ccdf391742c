// Package node drives a protocol in real time over a transport. The other driver is the
// simulator.
//
// A [Node] belongs to one process. It calls its protocol from whichever goroutine
// has an event for it, one at a time under a lock, and sends all frames of the
// protocol before the next event. There is no queue in between: the goroutine that
// reads a frame also passes it on, which is as fast as a process can relay. When
// several frames have arrived together, the protocol takes all of them before any
// is passed on, so that the frames to one peer go out in one write.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/driver/timers"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Protocol is a state machine that sends and receives frames. After each event, and
// at its deadline, the node calls Next until there is no frame left to send.
type Protocol interface {
	// Receive takes a frame. It returns an error if the frame is malformed.
	Receive(now protocol.Time, from protocol.Rank, frame []byte) error
	// Up and Down report that a peer is connected, and that its connection is lost
	// or could not be made. Writable reports that its queue has space again.
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	// Next returns a frame to send, head followed by body. Both are valid until the
	// next call.
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	// SendFailed reports that the frame that Next returned last was not sent: the
	// queue of the peer is full, or the peer is down.
	SendFailed(now protocol.Time, full bool)
	// Deadline returns when Next must be called again at the latest, or Never.
	Deadline() protocol.Time
}

// BufferProvider is a protocol that provides the memory for long frames; see
// [transport.BufferProvider].
type BufferProvider interface {
	ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte
	BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error
}

// Config configures a [Node].
type Config struct {
	Transport transport.Transport
	Protocol  Protocol
	// AfterStep, if not nil, is called under the lock after every event and the
	// sends that followed, with the time after them: the caller takes the results out
	// of the protocol there.
	AfterStep func(now protocol.Time)
	// Program, if not nil, is called after an event of the transport or the timer, without
	// the lock. A call that blocks does not hold up the node.
	Program transport.Program
	// Precise says that deadlines are in real time, to less than a millisecond.
	Precise bool
	// Watcher, if not nil, gets Up and Down before the protocol. It must not block.
	Watcher Watcher
	// HandleRequest, if not nil, answers clients; see [transport.RequestHandler].
	HandleRequest func(ctx context.Context, from transport.Client, request []byte, reply func([]byte))
	// Logger gets malformed frames, and peers that connect and disconnect. If nil,
	// nothing is logged.
	Logger *slog.Logger
}

// Watcher receives the connections of peers; see [transport.Handler].
type Watcher interface {
	Up(peer protocol.Rank, incarnation uint64)
	Down(peer protocol.Rank, cause error)
}

// Node drives a protocol. Its methods are safe for concurrent use.
type Node struct {
	config Config
	start  time.Time

	corker  transport.Corker       // the transport, if it is one
	vectors transport.VectorSender // the transport as a VectorSender; nil if it is none
	poller  transport.Poller       // the transport as a Poller; nil if it is none
	beside  bool                   // the program is called on goroutines of its own
	buffers BufferProvider         // the protocol, if it is one

	yielder yielder

	mu    sync.Mutex
	alarm timers.Alarm
	armed protocol.Time // what the alarm is set to
	// pending means that a frame has been received, at a time, and that its sends
	// wait for the next frame.
	pending bool
	arrived protocol.Time
	closed  bool
	idle    map[protocol.Rank]bool // peers whose connections were closed for being idle
	traffic traffic
	joined  []byte // a frame's head and body, for a transport that is no VectorSender
}

// ErrClosed is returned by Do after Close.
var ErrClosed = errors.New("node: closed")

// New makes a node, which is idle until Start.
func New(c Config) *Node {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		config: c, start: time.Now(), armed: protocol.Never, idle: map[protocol.Rank]bool{},
		traffic: traffic{peers: map[protocol.Rank]*Peer{}},
	}
	n.buffers, _ = c.Protocol.(BufferProvider)
	n.corker, _ = c.Transport.(transport.Corker)
	n.vectors, _ = c.Transport.(transport.VectorSender)
	n.poller, _ = c.Transport.(transport.Poller)
	if c.Program != nil {
		d, ok := c.Transport.(transport.Dispatcher)
		n.beside = !ok
		if ok {
			d.SetProgram(c.Program)
		}
	}
	newAlarm := timers.Coarse
	if c.Precise {
		newAlarm = timers.Precise
	}
	n.alarm = newAlarm(n.wake)
	return n
}

// Start starts the transport, and so the protocol.
func (n *Node) Start() error {
	var h transport.Handler = (*handler)(n)
	if n.config.HandleRequest != nil {
		h = requestHandler{(*handler)(n)}
	}
	if err := n.config.Transport.Start(h); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// Do calls f under the lock, in which f may use the protocol, and then sends the
// frames of the protocol.
func (n *Node) Do(f func(now protocol.Time)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	now := n.now()
	f(now)
	n.flush(now)
	return nil
}

// Look calls f under the lock, in which f may use the protocol in ways that make it send
// nothing.
func (n *Node) Look(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// Poll takes frames of a peer that have arrived on the caller's goroutine; see
// [transport.Poller]. With a Program it does nothing, because its caller would have to call that.
func (n *Node) Poll(peer protocol.Rank) (received, ok bool) {
	if n.poller == nil || n.config.Program != nil {
		return false, false
	}
	return n.poller.Poll(peer)
}

// Rest says that the caller sleeps instead of polling.
func (n *Node) Rest() {
	if n.poller != nil {
		n.poller.Rest()
	}
}

// dispatch calls the program on another goroutine, if it has something to do.
func (n *Node) dispatch() {
	if p := n.config.Program; p != nil && p.Pending() {
		go p.Dispatch()
	}
}

// Close closes the transport. The protocol is not called again.
func (n *Node) Close() error {
	n.mu.Lock()
	already := n.closed
	n.closed = true
	n.alarm.Stop()
	n.mu.Unlock()
	if already {
		return nil
	}
	return n.config.Transport.Close()
}

// now returns the time since New. It is never 0, which protocols may use for "not
// yet".
func (n *Node) now() protocol.Time { return protocol.Time(time.Since(n.start)) + 1 }

// Now returns the time by the clock of this process.
func (n *Node) Now() protocol.Time { return n.now() }

// Wall returns the time of day of a protocol's time.
func (n *Node) Wall(t protocol.Time) time.Time { return n.start.Add(time.Duration(t - 1)) }

// flush sends all frames of the protocol, and sets the timer for its deadline.
func (n *Node) flush(now protocol.Time) {
	n.pending = false
	if n.send(now) {
		now = n.now() // sends take time
	}
	if n.config.AfterStep != nil {
		n.config.AfterStep(now)
	}
	// A timer that is too early stays: one spurious wake-up is cheaper than setting
	// it after every event.
	if due := n.config.Protocol.Deadline(); due < n.armed {
		n.armed = due
		n.alarm.Set(time.Duration(due - now))
	}
}

// send sends all frames of the protocol, corked: those for one peer go out together. It
// reports whether there were any.
func (n *Node) send(now protocol.Time) (sent bool) {
	to, head, body, ok := n.config.Protocol.Next(now)
	if !ok {
		return false
	}
	if n.corker != nil {
		n.corker.Cork()
		defer n.corker.Uncork()
	}
	for ; ok; to, head, body, ok = n.config.Protocol.Next(now) {
		if err := n.sendVector(to, head, body); err != nil {
			n.config.Protocol.SendFailed(now, errors.Is(err, transport.ErrFull))
		} else {
			n.traffic.sent(to, len(head)+len(body))
		}
	}
	return true
}

// sendVector sends a frame in two parts if there are two and the transport takes
// them.
func (n *Node) sendVector(to protocol.Rank, head, body []byte) error {
	switch {
	case len(body) == 0:
		return n.config.Transport.Send(to, head)
	case n.vectors != nil:
		return n.vectors.SendVector(to, head, body)
	}
	n.joined = append(append(n.joined[:0], head...), body...)
	return n.config.Transport.Send(to, n.joined)
}

// wake is called by the timer.
func (n *Node) wake() {
	n.yielder.yield()
	defer n.dispatch()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.armed = protocol.Never
		n.flush(n.now())
	}
}

// handler is the node as the handler of its transport.
type handler Node

func (h *handler) do(f func(now protocol.Time)) {
	_ = (*Node)(h).Do(f) // a closed node ignores events
	(*Node)(h).dispatch()
}

// Receive implements [transport.Handler].
func (h *handler) Receive(from protocol.Rank, frame []byte) { h.receive(from, frame, nil, true) }

// ReceiveMore implements [transport.BatchHandler]: the last frame of the batch
// flushes.
func (h *handler) ReceiveMore(from protocol.Rank, frame []byte) { h.receive(from, frame, nil, false) }

// ReceiveBuffer implements [transport.BufferProvider].
func (h *handler) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.buffers == nil || h.closed {
		return nil
	}
	return h.buffers.ReceiveBuffer(from, head, size)
}

// BufferFilled implements [transport.BufferProvider].
func (h *handler) BufferFilled(from protocol.Rank, head, body []byte) {
	h.receive(from, head, body, true)
}

func (h *handler) receive(from protocol.Rank, head, body []byte, last bool) {
	n := (*Node)(h)
	n.step(from, head, body, last)
	if last && n.beside {
		n.dispatch()
	}
}

// step passes a frame to the protocol.
func (n *Node) step(from protocol.Rank, head, body []byte, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if !n.pending {
		n.arrived = n.now()
	}
	now := n.arrived // frames of one batch have arrived at one time
	n.traffic.received(now, from, len(head)+len(body))
	if err := n.deliver(now, from, head, body); err != nil {
		n.config.Logger.Warn("frame refused", "from", from, "error", err)
	}
	n.pending = !last
	if last {
		n.flush(now)
	}
}

// deliver calls the protocol. A frame with a body is in a buffer of the protocol.
func (n *Node) deliver(now protocol.Time, from protocol.Rank, head, body []byte) error {
	if body != nil {
		return n.buffers.BufferFilled(now, from, head, body)
	}
	return n.config.Protocol.Receive(now, from, head)
}

// Up implements [transport.Handler].
func (h *handler) Up(peer protocol.Rank, incarnation uint64) {
	h.config.Logger.Debug("peer up", "peer", peer, "incarnation", incarnation)
	if h.config.Watcher != nil {
		h.config.Watcher.Up(peer, incarnation)
	}
	h.do(func(now protocol.Time) {
		h.traffic.connected(now, peer, true)
		if h.idle[peer] {
			delete(h.idle, peer)
			h.config.Protocol.Down(now, peer)
		}
		h.config.Protocol.Up(now, peer)
	})
}

// Down implements [transport.Handler]. That a connection was closed for being idle is no
// news for the protocol: it learns of it when there is another one.
func (h *handler) Down(peer protocol.Rank, cause error) {
	h.config.Logger.Debug("peer down", "peer", peer, "cause", cause)
	if errors.Is(cause, transport.ErrIdle) {
		h.do(func(now protocol.Time) {
			h.idle[peer] = true
			h.traffic.connected(now, peer, false)
		})
		return
	}
	if h.config.Watcher != nil {
		h.config.Watcher.Down(peer, cause)
	}
	h.do(func(now protocol.Time) {
		h.traffic.connected(now, peer, false)
		delete(h.idle, peer)
		h.config.Protocol.Down(now, peer)
	})
}

// Writable implements [transport.Handler].
func (h *handler) Writable(peer protocol.Rank) {
	h.do(func(now protocol.Time) { h.config.Protocol.Writable(now, peer) })
}

// requestHandler is a handler that answers clients.
type requestHandler struct{ *handler }

// HandleRequest implements [transport.RequestHandler].
func (r requestHandler) HandleRequest(ctx context.Context, from transport.Client, request []byte, reply func([]byte)) {
	r.config.HandleRequest(ctx, from, request, reply)
}
