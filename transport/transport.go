// Package transport moves frames between the members of a group.
//
// A [Transport] promises little, so that many things can be one: it keeps the
// order of frames between two members while a connection lasts, and delivers a
// frame at most once per connection. It may lose frames, when a peer is down,
// slow or a connection breaks. What must not be lost is asked for again by those
// above (package node).
//
// What it does promise is never to wait: [Transport.Send] queues a frame or says
// at once that it cannot, so that a dead or slow peer never holds up another.
package transport

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Transport connects one member to all others. Its methods may be called from
// several goroutines.
type Transport interface {
	// Start begins to receive, and tells the handler what happens. It is called
	// once, before any Send.
	Start(Handler) error

	// Send queues a frame for a peer and returns at once. The bytes are the
	// caller's again when it returns. An error says that this frame is lost:
	// [ErrFull], [ErrDown] or [ErrClosed], in a [SendError].
	Send(to protocol.Rank, frame []byte) error

	// Close ends everything: it tries for a moment to get out what is queued,
	// and returns when no goroutine of the transport is left and the handler
	// will not be called again.
	Close() error
}

// Handler is told what happens. Its methods are called from the transport's
// goroutines: those about one peer one after the other, those about different
// peers possibly at the same time. They must not wait for another frame.
type Handler interface {
	// Receive takes a frame. The bytes are only lent until it returns.
	Receive(from protocol.Rank, frame []byte)
	// Up says that there is a connection to a peer, with its incarnation: a
	// number that is larger each time the peer's process is started anew.
	Up(peer protocol.Rank, incarnation uint64)
	// Down says that there is none any more, or that one could not be made.
	Down(peer protocol.Rank, cause error)
	// Room says that a peer whose queue was full has room again.
	Room(peer protocol.Rank)
}

// Corker is a Transport that can join small frames into one write.
type Corker interface {
	// Cork lets what is sent from now on wait for Uncork, which sends it at
	// the latest.
	Cork()
	Uncork()
}

// Directory is a Transport whose peers may come, go and move while it runs.
type Directory interface {
	// SetPeer says where a rank is reached from now on; "" is nowhere, because
	// the rank is nobody's. A connection to where it was before is ended.
	// A rank that this transport cannot have as a peer is ignored.
	SetPeer(rank protocol.Rank, address string)
}

// Doorkeeper is a Handler that answers guests: those who are not members, and so
// have no rank, and ask a member something before they are. Without it a
// transport turns guests away.
type Doorkeeper interface {
	// Knock takes a guest's request, whose bytes are the doorkeeper's to keep.
	// It may be called for several guests at the same time, and must not wait.
	// The answer may be given later and by any goroutine. Only the first counts,
	// and none is sent to a guest who has gone or after Close. Its bytes must not
	// be changed any more, and may be given to several guests.
	Knock(request []byte, answer func([]byte))
}

// Follower is a Handler that would rather know of several frames that have
// arrived together than act after each.
type Follower interface {
	// ReceiveMore takes a frame like Receive. Another one from the same peer has
	// arrived already and follows at once.
	ReceiveMore(from protocol.Rank, frame []byte)
}

// Gatherer is a Transport that takes a frame in two parts, which saves who has it
// in two places from joining them.
type Gatherer interface {
	// SendParts sends a frame like Send: a head, and a body behind it.
	SendParts(to protocol.Rank, head, body []byte) error
}

// Host is a Handler that has a place for long frames: a transport may read one to
// where it belongs, instead of lending it to be copied there.
type Host interface {
	// Place returns where all of a frame belongs but its head, which has come
	// already: size-len(head) bytes. Nil: nowhere yet, so that Receive will be
	// called. What is returned is written to until ReceivePlaced is called, the peer
	// is told to be down, or Place is called again for it.
	Place(from protocol.Rank, head []byte, size int) []byte
	// ReceivePlaced takes a frame like Receive. Its body is where Place has said.
	ReceivePlaced(from protocol.Rank, head, body []byte)
}

// Why a frame was not queued.
var (
	// ErrFull: the peer's queue is full; Handler.Room will say when it is not.
	ErrFull = errors.New("queue full")
	// ErrDown: there is no connection, and it is too early to try again.
	ErrDown = errors.New("peer down")
	// ErrClosed: the transport has been closed.
	ErrClosed = errors.New("transport closed")
)

// SendError is why a frame for a peer was not queued.
type SendError struct {
	To  protocol.Rank
	Err error
}

func (e *SendError) Error() string { return fmt.Sprintf("transport: to rank %d: %v", e.To, e.Err) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
