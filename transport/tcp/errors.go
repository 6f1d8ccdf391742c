package tcp

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// PeerError is what [transport.Handler] is told when a peer goes down.
type PeerError struct {
	Peer    protocol.Rank
	Address string
	// Err is why: an error of package net or crypto/tls, [io.EOF] if the peer
	// has ended the connection, a [*RefusedError], [*wire.VersionError],
	// [*wire.HelloError] or [*wire.SizeError], [ErrReplaced] or [ErrMoved].
	Err error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("tcp: rank %d at %s: %v", e.Peer, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// RefusedError is a peer's answer that it does not want a connection.
type RefusedError struct {
	Verdict wire.Status
}

func (e *RefusedError) Error() string { return e.Verdict.String() }

// ErrReplaced: the peer has opened a new connection, because it has been
// started anew or has lost the old one before we noticed.
var ErrReplaced = errors.New("replaced by a newer connection")

// ErrMoved: the peer has another address now, or none.
var ErrMoved = errors.New("its address has changed")
