package tcp

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// PeerError is the cause that [transport.Handler] gets when a peer goes down.
type PeerError struct {
	Peer    protocol.Rank
	Address string
	// Err is an error of package net or crypto/tls, [io.EOF] if the peer has
	// closed the connection, a [*RefusedError], an error that wraps [ErrVersion],
	// [ErrHello] or [ErrFrameSize], [ErrReplaced] or [ErrMoved], [transport.ErrIdle], and
	// in a group with views also a [*transport.OtherProcessError] or a
	// [*transport.RemovedError].
	Err error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("tcp: rank %d at %s: %v", e.Peer, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// RequestError is returned by [Request] when there is no reply.
type RequestError struct {
	Address string
	// Err is the context's error, an error of package net or crypto/tls, a
	// [*RefusedError], an error that wraps [ErrVersion], [ErrHello] or
	// [ErrFrameSize], or [ErrUnanswered].
	Err error
}

func (e *RequestError) Error() string { return fmt.Sprintf("tcp: request to %s: %v", e.Address, e.Err) }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// RefusedError means that the other member has refused the connection.
type RefusedError struct {
	// Reason is [ErrGroup], [ErrRank], [ErrMismatch], [ErrStale], [ErrDuplicate], [ErrUnsupported],
	// [ErrBusy], [ErrSecret], [ErrRemoved], [ErrTaken] or [ErrEarly], or wraps [ErrCertificate].
	Reason error
}

func (e *RefusedError) Error() string { return "refused: " + e.Reason.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// The reasons of a [RefusedError].
var (
	// ErrGroup means that the other process is of another group. It wraps [ErrHello].
	ErrGroup = fmt.Errorf("%w: the other process is of another group", ErrHello)
	// ErrRank means that the other process has another rank. It wraps [ErrHello].
	ErrRank = fmt.Errorf("%w: the other process has another rank", ErrHello)
	// ErrMismatch means that the settings of the two members differ.
	ErrMismatch = errors.New("the settings of the two members do not match")
	// ErrStale means that the other member knows a newer incarnation or connection
	// of this rank.
	ErrStale = errors.New("a newer incarnation or connection of this rank is known")
	// ErrDuplicate means that the other member dials too, and that its connection
	// is kept.
	ErrDuplicate = errors.New("the other member dials too")
	// ErrUnsupported means that the member answers no requests.
	ErrUnsupported = errors.New("this member answers no requests")
	// ErrBusy means that too many clients wait for a reply of the member.
	ErrBusy = errors.New("too many clients wait at this member")
	// ErrSecret means that one side does not know the secret of the other
	// (Config.Security.Secret), or that only one side has one.
	ErrSecret = errors.New("the group's secret is missing or differs")
	// ErrRemoved means that this process is no longer a member.
	ErrRemoved = errors.New("this process is no longer a member")
	// ErrTaken means that another process has this rank, with the same incarnation.
	ErrTaken = errors.New("another process has this rank")
	// ErrEarly means that the other member does not know the view that has admitted
	// this one yet.
	ErrEarly = errors.New("the view that has admitted this member is not known there yet")
	// ErrCertificate means that the certificate of this member is not for the rank it
	// claims.
	ErrCertificate = errors.New("the certificate is not for the member of this rank")
)

// formerError means that a former process of a rank still tries to connect.
type formerError struct{ theirs, newest uint64 }

func (e *formerError) Error() string {
	return fmt.Sprintf("incarnation %d of this rank is over: %d is known", e.theirs, e.newest)
}

// Unwrap returns the status that the process receives.
func (e *formerError) Unwrap() error { return refused(wire.Stale) }

// refused returns the error for a handshake status other than accepted.
func refused(s wire.Status) *RefusedError {
	reasons := [...]error{
		wire.Refused: ErrMismatch, wire.Stale: ErrStale, wire.Duplicate: ErrDuplicate,
		wire.Unsupported: ErrUnsupported, wire.Busy: ErrBusy,
		wire.WrongSecret: ErrSecret, wire.WrongCertificate: ErrCertificate,
		wire.Removed: ErrRemoved, wire.Taken: ErrTaken, wire.Early: ErrEarly,
		wire.OtherGroup: ErrGroup, wire.OtherRank: ErrRank,
	}
	return &RefusedError{Reason: reasons[s]}
}

// The errors of bytes that are not what they should be.
var (
	// ErrVersion means that the other side speaks another protocol version.
	ErrVersion = wire.ErrVersion
	// ErrHello means that the handshake of the other side is malformed, or comes
	// from another group or rank.
	ErrHello = wire.ErrHello
	// ErrFrameSize means that a frame is over the limit.
	ErrFrameSize = wire.ErrFrameSize
)

// The causes of a lost connection that come from this side.
var (
	// ErrReplaced means that the peer has opened a new connection, because it has
	// been restarted, or has lost the old connection before this side noticed.
	ErrReplaced = errors.New("replaced by a newer connection")
	// ErrMoved means that the address of the peer has changed.
	ErrMoved = errors.New("its address has changed")
)

// ErrUnanswered means that a member has closed the connection without a reply: it
// is closing, or had no reply in time.
var ErrUnanswered = errors.New("no answer")
