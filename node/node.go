// Package node drives a protocol in real time over a real transport: the second
// driver beside the simulator.
//
// A [Node] is one process's. It calls its protocol from whichever goroutine has
// something for it, one at a time, and lets it send all it wants before the next
// gets its turn. There is no queue in between: a frame is read, decided upon and
// passed on by the goroutine that read it, which is as fast as a process can
// relay.
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
	// Up and Room say that a peer is connected, or can be sent to again.
	Up(now protocol.Time, peer protocol.Rank)
	Room(now protocol.Time, peer protocol.Rank)
	// Next returns a frame to send, valid until the next call.
	Next(now protocol.Time) (to protocol.Rank, frame []byte, ok bool)
	// Unsent says that the frame Next returned last was not sent: because the
	// peer's queue is full, or because it is down.
	Unsent(now protocol.Time, full bool)
	// Deadline is when Next must be called again at the latest, or Never.
	Deadline() protocol.Time
}

// Config is what a node is made of.
type Config struct {
	Transport transport.Transport
	Protocol  Protocol
	// Settled, if not nil, is called each time the protocol has done what it
	// could, still alone: the place to take results out of it.
	Settled func(now protocol.Time)
	// Logger is told of frames that make no sense and of peers that come and
	// go. Nil: silent.
	Logger *slog.Logger
}

// Node drives a protocol. Its methods may be called from several goroutines.
type Node struct {
	config Config
	start  time.Time

	mu     sync.Mutex
	timer  *time.Timer
	armed  protocol.Time // what the timer is set to
	closed bool
}

// ErrClosed is the error of a node that has been closed.
var ErrClosed = errors.New("node: closed")

// New makes a node and starts its transport.
func New(c Config) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{config: c, start: time.Now(), armed: protocol.Never}
	n.timer = time.AfterFunc(time.Hour, n.wake)
	n.timer.Stop()
	if err := c.Transport.Start((*handler)(n)); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return n, nil
}

// Do lets f use the protocol, alone, and carries out what follows.
func (n *Node) Do(f func(now protocol.Time)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	f(n.now())
	n.settle()
	return nil
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
	return n.config.Transport.Close()
}

// now is the time since the node began. It is never 0, which protocols may use
// for "not yet".
func (n *Node) now() protocol.Time { return protocol.Time(time.Since(n.start)) + 1 }

// settle sends all the protocol wants to send, and sets the timer for the rest.
func (n *Node) settle() {
	now := n.now()
	for {
		to, frame, ok := n.config.Protocol.Next(now)
		if !ok {
			break
		}
		if err := n.config.Transport.Send(to, frame); err != nil {
			n.config.Protocol.Unsent(now, errors.Is(err, transport.ErrFull))
		}
	}
	if n.config.Settled != nil {
		n.config.Settled(now)
	}
	if due := n.config.Protocol.Deadline(); due != n.armed {
		n.armed = due
		if due == protocol.Never {
			n.timer.Stop()
		} else {
			n.timer.Reset(time.Duration(due - now))
		}
	}
}

// wake is what the timer calls.
func (n *Node) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.armed = protocol.Never
		n.settle()
	}
}

// handler is the node as its transport sees it.
type handler Node

func (h *handler) do(f func(now protocol.Time)) {
	_ = (*Node)(h).Do(f) // a closed node is told nothing any more
}

// Receive hands a frame to the protocol.
func (h *handler) Receive(from protocol.Rank, frame []byte) {
	h.do(func(now protocol.Time) {
		if err := h.config.Protocol.Receive(now, from, frame); err != nil {
			h.config.Logger.Warn("frame refused", "from", from, "error", err)
		}
	})
}

// Up tells the protocol of a connection.
func (h *handler) Up(peer protocol.Rank, incarnation uint64) {
	h.config.Logger.Debug("peer up", "rank", peer, "incarnation", incarnation)
	h.do(func(now protocol.Time) { h.config.Protocol.Up(now, peer) })
}

// Down is only logged: sends to a peer that is down are refused one by one.
func (h *handler) Down(peer protocol.Rank, cause error) {
	h.config.Logger.Debug("peer down", "rank", peer, "cause", cause)
}

// Room tells the protocol that a peer can be sent to again.
func (h *handler) Room(peer protocol.Rank) {
	h.do(func(now protocol.Time) { h.config.Protocol.Room(now, peer) })
}
