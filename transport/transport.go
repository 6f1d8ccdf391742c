// Package transport defines how frames move between the members of a group.
//
// A [Transport] promises little, so that many kinds of network can be one. It
// keeps the order of frames between two members while a connection lasts, and it
// delivers a frame at most once per connection. It may lose frames: when a peer
// is down, when a peer is slow, or when a connection breaks. The protocols above
// it retransmit what must not be lost.
//
// A transport never blocks its caller. [Transport.Send] queues a frame or returns
// an error immediately, so a dead or slow peer never delays another.
//
// The optional interfaces of this package are discovered by type assertion. A
// Transport may also be a [Corker], a [VectorSender], a [Poller], a [Dispatcher], an [AddressBook] or a [Roster]. A
// Handler may also be a [RequestHandler], a [BatchHandler] or a [BufferProvider].
package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Transport connects one member to all others. Its methods are safe for
// concurrent use.
type Transport interface {
	// Start begins to receive and to call the handler. The caller calls it once,
	// before any Send.
	Start(Handler) error

	// Send queues a frame for a peer and returns immediately. The transport does
	// not keep the bytes after it returns. An error means that this frame is lost.
	// It is a [SendError] that wraps [ErrFull], [ErrDown] or [ErrClosed].
	Send(to protocol.Rank, frame []byte) error

	// Close flushes the queues for a bounded time and then closes every
	// connection. When it returns, no goroutine of the transport is left and the
	// handler is not called again.
	Close() error
}

// Handler receives the events of a Transport. The transport calls it from its own
// goroutines: calls about one peer are serialized, calls about different peers
// may be concurrent. A method must not wait for another frame.
type Handler interface {
	// Receive takes a frame. The bytes are valid until it returns.
	Receive(from protocol.Rank, frame []byte)
	// Up reports a connection to a peer, and the peer's incarnation: a number
	// that grows with every restart of the peer's process.
	Up(peer protocol.Rank, incarnation uint64)
	// Down reports that the connection to a peer is lost or that a dial failed.
	Down(peer protocol.Rank, cause error)
	// Writable reports that the queue of a peer, which was full, has space again.
	Writable(peer protocol.Rank)
}

// Corker is a Transport that can join small frames into one write, as TCP_CORK
// does.
type Corker interface {
	// Cork lets frames wait until Uncork. Calls nest.
	Cork()
	// Uncork sends the frames that have waited.
	Uncork()
}

// AddressBook is a Transport whose peers may change their addresses while it
// runs.
type AddressBook interface {
	// SetPeer sets the address of a rank; "" means that the rank is vacant. It
	// closes a connection to the former address. It ignores a rank that cannot be
	// a peer of this transport.
	SetPeer(rank protocol.Rank, address string)
}

// View is the part of a view that a [Roster] needs.
type View struct {
	Number uint64
	// Version is the protocol version of the group. If zero, the highest that this build
	// speaks.
	Version uint16
	// Ranks is the number of ranks, those that no process has included. Hosts of the members
	// of these ranks have priority over strangers when many connect. If zero, none has.
	Ranks protocol.Rank
	// Member returns the process that has a rank, or false if none has. It always
	// returns the same, and calls may be concurrent. A Roster looks up the peers that it
	// talks to, so that a view change costs it nothing for all others. If nil, no
	// process has a rank.
	Member func(protocol.Rank) (Member, bool)
}

// Member is a process in a view.
type Member struct {
	Rank        protocol.Rank
	ID, Address string
	// Incarnation is the number of the view that has admitted the process. Nonce is a
	// random number that the process has drawn when it started. If it is zero, it is
	// not known: the first process that connects as this member is the one.
	Incarnation, Nonce uint64
}

// Roster is a Transport that knows the process of each rank, by SetView. It accepts no other
// process as a member of the view, whatever incarnation that claims.
type Roster interface {
	// SetView sets the view, for the first time before Start, when the view also has
	// this process. It closes connections
	// to processes that no longer have their rank, if another process has it. A
	// process that is not in the view is refused, and learns it by a [RemovedError].
	// A process that a later view has admitted waits for that view.
	SetView(v View)
}

// Program is the code that eventually handles the frames of a Handler. It may take any time.
type Program interface {
	// Pending reports whether Dispatch has something to do.
	Pending() bool
	// Dispatch does it. It may block.
	Dispatch()
}

// Dispatcher is a Transport that calls a [Program] on the goroutine that has received frames,
// which saves waking another one. While a call lasts, it receives frames on another goroutine.
type Dispatcher interface {
	// SetProgram sets the program, before Start. It is called after frames that have arrived
	// together.
	SetProgram(Program)
}

// RequestHandler is a Handler that answers requests of clients. A client is a
// process that is not a member and has no rank; usually it asks to join. A
// transport refuses clients if its handler is not a RequestHandler.
type RequestHandler interface {
	// HandleRequest takes a client's request and owns its bytes. The context ends when
	// the client has disconnected, or has its reply. Calls may be
	// concurrent, and must not block. Any goroutine may call reply, also after
	// HandleRequest has returned. Only the first reply counts, and none is sent
	// after the client has disconnected or the transport is closed. The bytes of
	// a reply must not change afterwards; several replies may share them.
	HandleRequest(ctx context.Context, from Client, request []byte, reply func([]byte))
}

// Client is the process that sends a request, as far as the transport knows it.
type Client struct {
	// Address is where the connection comes from.
	Address string
	// Certificates is its chain, verified, with its own certificate first. It is empty
	// without TLS.
	Certificates []*x509.Certificate
}

// BatchHandler is a Handler that prefers to act once on several frames that
// have arrived together.
type BatchHandler interface {
	// ReceiveMore takes a frame like Receive. The next frame of the same peer has
	// arrived already and follows immediately, as MSG_MORE says for sends.
	ReceiveMore(from protocol.Rank, frame []byte)
}

// VectorSender is a Transport that sends a frame from two buffers, as writev
// does, so that the caller need not join them.
type VectorSender interface {
	// SendVector sends the frame that consists of head followed by body, like Send.
	SendVector(to protocol.Rank, head, body []byte) error
}

// Poller is a Transport whose connections a goroutine that waits for a frame can read
// itself. That saves two wake-ups, of the transport's goroutine and of the one that waits,
// which take longer than a short frame.
type Poller interface {
	// Poll passes frames of a peer that have arrived to the handler, on the caller's
	// goroutine, and returns at once if none has. It reports whether bytes have
	// arrived, which may be a part of a frame only. If ok is false, there is no
	// connection that can be polled, because it is encrypted or not open, and the caller
	// has to wait. The caller must hold no lock that the handler takes.
	Poll(peer protocol.Rank) (received, ok bool)

	// Rest says that no goroutine polls at present: the caller is about to sleep. After a
	// Poll, the transport's own goroutines may leave frames to the next one, for less than
	// a millisecond. Rest ends that, for all peers. The caller must hold no lock that the
	// handler takes.
	Rest()
}

// BufferProvider is a Handler that provides the memory for long frames. The
// transport then reads the frame to its destination, which saves a copy.
type BufferProvider interface {
	// ReceiveBuffer returns the buffer for the rest of a frame: the size-len(head)
	// bytes that follow head, which has arrived. If it returns nil, the transport
	// calls Receive with the whole frame. The transport owns the buffer until it
	// calls BufferFilled, Down, or ReceiveBuffer again for the same peer.
	ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte
	// BufferFilled takes a frame like Receive. Its body is in the buffer that
	// ReceiveBuffer has returned.
	BufferFilled(from protocol.Rank, head, body []byte)
}

// The causes of a [SendError].
var (
	// ErrFull means that the peer's queue is full. Handler.Writable follows.
	ErrFull = errors.New("queue full")
	// ErrDown means that there is no connection and that it is too early to dial
	// again.
	ErrDown = errors.New("peer down")
	// ErrClosed means that the transport is closed.
	ErrClosed = errors.New("transport closed")
)

// OtherProcessError is wrapped by the cause of a [Handler.Down] if another process than
// the member answers at its address: the member is gone. The other process may be a member
// itself when the handler is called.
type OtherProcessError struct {
	// Incarnation is that of the member that is gone.
	Incarnation uint64
}

func (*OtherProcessError) Error() string { return "another process answers at its address" }

// RemovedError is wrapped by the cause of a [Handler.Down] if the peer says that this
// process is no longer a member.
type RemovedError struct {
	// View is the number of the peer's view.
	View uint64
	// Holder is the member that has this process's rank in that view. It is nil if it
	// has none.
	Holder *Member
}

func (e *RemovedError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("this process is not in view %d", e.View)
	}
	return fmt.Sprintf("this process is not in view %d, which has %q at %s, incarnation %d, at its rank", e.View,
		e.Holder.ID, e.Holder.Address, e.Holder.Incarnation)
}

// ErrIdle is the cause of a Down that says nothing about the peer: both sides have
// agreed to close a connection that was idle. No frame is lost by that, and the next
// Send opens another one.
var ErrIdle = errors.New("the connection was idle")

// SendError is returned by [Transport.Send] when a frame was not queued.
type SendError struct {
	To  protocol.Rank
	Err error
}

func (e *SendError) Error() string { return fmt.Sprintf("transport: to rank %d: %v", e.To, e.Err) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
