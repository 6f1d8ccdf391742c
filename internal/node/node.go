// Package node drives a protocol in real time over a real transport: the second
// driver beside the simulator.
//
// A [Node] is one process's. It calls its protocol from whichever goroutine has
// something for it, one at a time, and lets it send all it wants before the next
// gets its turn. There is no queue in between: a frame is read, decided upon and
// passed on by the goroutine that read it, which is as fast as a process can
// relay. Of several frames that have arrived together, all are read before any is
// passed on: what goes to one peer then goes in one write.
package node

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Protocol is what a node drives: a state machine that speaks in frames. After
// each call that takes something in, and when its deadline has come, Next is
// called until it has nothing left to send.
type Protocol interface {
	// Receive takes a frame; an error says that it made no sense.
	Receive(now protocol.Time, from protocol.Rank, frame []byte) error
	// Up and Down say that a peer is connected, and that it is no longer or
	// could not be; Room that it can be sent to again.
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	// Next returns a frame to send, a head and a body behind it, valid until the
	// next call.
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	// SendFailed says that the frame Next returned last was not sent: because the
	// peer's queue is full, or because it is down.
	SendFailed(now protocol.Time, full bool)
	// Deadline is when Next must be called again at the latest, or Never.
	Deadline() protocol.Time
}

// Throttler is a protocol that may have to wait for one peer before it takes in
// more from others.
type Throttler interface {
	// ThrottledUntil returns until when, at most, nothing more is to be taken in from
	// a peer. Any other call may end it earlier.
	ThrottledUntil(from protocol.Rank) protocol.Time
}

// BufferProvider is a protocol that has a place for long frames, as [transport.BufferProvider] says.
type BufferProvider interface {
	ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte
	BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error
}

// Config is what a node is made of.
type Config struct {
	Transport transport.Transport
	Protocol  Protocol
	// Settled, if not nil, is called each time the protocol has done what it
	// could, still alone: the place to take results out of it.
	AfterStep func(now protocol.Time)
	// After, if not nil, is called after that, no longer alone.
	AfterUnlock func()
	// Watcher, if not nil, is told of peers that come and go, before the
	// protocol is. It must not wait.
	Watcher Watcher
	// Knock, if not nil, answers guests; see [transport.RequestHandler].
	HandleRequest func(request []byte, answer func([]byte))
	// Logger is told of frames that make no sense and of peers that come and
	// go. Nil: silent.
	Logger *slog.Logger
}

// Watcher is told of peers that come and go.
type Watcher interface {
	Up(peer protocol.Rank, incarnation uint64)
	Down(peer protocol.Rank, cause error)
}

// Node drives a protocol. Its methods may be called from several goroutines.
type Node struct {
	config Config
	start  time.Time

	corker    transport.Corker       // the transport, if it is one
	vectors   transport.VectorSender // it too
	throttler Throttler              // the protocol, if it is one
	buffers   BufferProvider         // it too
	done      chan struct{}          // closed by Close

	mu    sync.Mutex
	timer *time.Timer
	// waiting is how many goroutines wait until the protocol is not congested;
	// moved is closed, and made anew, when it may not be any more.
	waiting  int
	progress chan struct{}
	armed    protocol.Time // what the timer is set to
	// A frame has been received, at a time, and its consequences wait for the
	// next one's.
	pending bool
	arrived protocol.Time
	closed  bool
	joined  []byte // a frame's two parts, if the transport wants one
}

// ErrClosed is the error of a node that has been closed.
var ErrClosed = errors.New("node: closed")

// New makes a node. It does nothing before Start.
func New(c Config) *Node {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{config: c, start: time.Now(), armed: protocol.Never, progress: make(chan struct{}), done: make(chan struct{})}
	n.throttler, _ = c.Protocol.(Throttler)
	n.buffers, _ = c.Protocol.(BufferProvider)
	n.corker, _ = c.Transport.(transport.Corker)
	n.vectors, _ = c.Transport.(transport.VectorSender)
	n.timer = time.AfterFunc(time.Hour, n.wake)
	n.timer.Stop()
	return n
}

// Start starts the transport. From now on the protocol is driven, and what the
// config has to be called is called.
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

// Do lets f use the protocol, alone, and carries out what follows.
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

// unlocked is called when something has been settled by the transport or the timer.
func (n *Node) unlocked() {
	if n.config.AfterUnlock != nil {
		n.config.AfterUnlock()
	}
}

// Close ends the node and its transport. The protocol is not called again.
func (n *Node) Close() error {
	n.mu.Lock()
	already := n.closed
	n.closed = true
	n.timer.Stop()
	n.mu.Unlock()
	if already {
		return nil
	}
	close(n.done)
	return n.config.Transport.Close()
}

// now is the time since the node began. It is never 0, which protocols may use
// for "not yet".
func (n *Node) now() protocol.Time { return protocol.Time(time.Since(n.start)) + 1 }

// flush sends all the protocol wants to send, and sets the timer for the rest.
func (n *Node) flush(now protocol.Time) {
	n.pending = false
	n.send(now)
	if n.config.AfterStep != nil {
		n.config.AfterStep(now)
	}
	if n.waiting > 0 {
		close(n.progress)
		n.progress = make(chan struct{})
	}
	// A timer that is too early is left alone: it costs a look when it fires,
	// where to move it would cost something each time.
	if due := n.config.Protocol.Deadline(); due < n.armed {
		n.armed = due
		n.timer.Reset(time.Duration(due - now))
	}
}

// send sends all the protocol wants to send. Frames for one peer go out together.
func (n *Node) send(now protocol.Time) {
	to, head, body, ok := n.config.Protocol.Next(now)
	if !ok {
		return
	}
	if n.corker != nil {
		n.corker.Cork()
		defer n.corker.Uncork()
	}
	for ; ok; to, head, body, ok = n.config.Protocol.Next(now) {
		if err := n.sendVector(to, head, body); err != nil {
			n.config.Protocol.SendFailed(now, errors.Is(err, transport.ErrFull))
		}
	}
}

// sendVector sends a frame in two parts, or in one if there is only one, or if the
// transport takes only that.
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

// wake is what the timer calls.
func (n *Node) wake() {
	defer n.unlocked()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.armed = protocol.Never
		n.flush(n.now())
	}
}

// handler is the node as its transport sees it.
type handler Node

func (h *handler) do(f func(now protocol.Time)) {
	_ = (*Node)(h).Do(f) // a closed node is told nothing any more
	(*Node)(h).unlocked()
}

// Receive hands a frame to the protocol.
func (h *handler) Receive(from protocol.Rank, frame []byte) { h.receive(from, frame, nil, true) }

// ReceiveMore does so too, and leaves it to the next one to act.
func (h *handler) ReceiveMore(from protocol.Rank, frame []byte) { h.receive(from, frame, nil, false) }

// ReceiveBuffer asks the protocol where a long frame belongs.
func (h *handler) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.buffers == nil || h.closed {
		return nil
	}
	return h.buffers.ReceiveBuffer(from, head, size)
}

// BufferFilled hands a frame that is where it belongs to the protocol.
func (h *handler) BufferFilled(from protocol.Rank, head, body []byte) {
	h.receive(from, head, body, true)
}

func (h *handler) receive(from protocol.Rank, head, body []byte, last bool) {
	n := (*Node)(h)
	throttled := n.step(from, head, body, last)
	if last {
		n.unlocked()
	}
	if throttled {
		n.throttle(from)
	}
}

// step hands a frame to the protocol, and reports whether to wait before the next.
func (n *Node) step(from protocol.Rank, head, body []byte, last bool) (throttled bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	if !n.pending {
		n.arrived = n.now()
	}
	now := n.arrived // frames that have arrived together have arrived at one time
	if err := n.deliver(now, from, head, body); err != nil {
		n.config.Logger.Warn("frame refused", "from", from, "error", err)
	}
	if n.pending = !last; last {
		n.flush(now)
	}
	return last && n.throttler != nil && n.throttler.ThrottledUntil(from) > now
}

// deliver hands a frame to the protocol. One with a body has been placed.
func (n *Node) deliver(now protocol.Time, from protocol.Rank, head, body []byte) error {
	if body != nil {
		return n.buffers.BufferFilled(now, from, head, body)
	}
	return n.config.Protocol.Receive(now, from, head)
}

// throttle waits, by not taking in more from a peer, until the protocol has room
// for what follows.
func (n *Node) throttle(from protocol.Rank) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting++
	defer func() { n.waiting-- }()
	for {
		left := n.throttler.ThrottledUntil(from) - n.now()
		if left <= 0 || n.closed {
			return
		}
		n.waitFor(n.progress, time.Duration(left))
	}
}

// waitFor waits without the lock until something is closed, or so long.
func (n *Node) waitFor(progress chan struct{}, long time.Duration) {
	n.mu.Unlock()
	defer n.mu.Lock()
	select {
	case <-progress:
	case <-n.done:
	case <-time.After(long):
	}
}

// Up tells the protocol of a connection.
func (h *handler) Up(peer protocol.Rank, incarnation uint64) {
	h.config.Logger.Debug("peer up", "rank", peer, "incarnation", incarnation)
	if h.config.Watcher != nil {
		h.config.Watcher.Up(peer, incarnation)
	}
	h.do(func(now protocol.Time) { h.config.Protocol.Up(now, peer) })
}

// Down tells the protocol of a connection that is lost.
func (h *handler) Down(peer protocol.Rank, cause error) {
	h.config.Logger.Debug("peer down", "rank", peer, "cause", cause)
	if h.config.Watcher != nil {
		h.config.Watcher.Down(peer, cause)
	}
	h.do(func(now protocol.Time) { h.config.Protocol.Down(now, peer) })
}

// Writable tells the protocol that a peer can be sent to again.
func (h *handler) Writable(peer protocol.Rank) {
	h.do(func(now protocol.Time) { h.config.Protocol.Writable(now, peer) })
}

// requestHandler is a handler that answers guests.
type requestHandler struct{ *handler }

// HandleRequest implements [transport.RequestHandler].
func (d requestHandler) HandleRequest(request []byte, answer func([]byte)) {
	d.config.HandleRequest(request, answer)
}
