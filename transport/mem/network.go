// Package mem is a transport between members in one process. Tests use it, and
// programs with many ranks in one process.
//
// It has no timers and no hidden delays, so a test is deterministic as far as its
// goroutines are, and instant in a testing/synctest bubble. Package fault adds the
// faults of a real network.
package mem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Config configures a [Network]. The zero value is valid.
type Config struct {
	// QueueBytes bounds the bytes that wait from one member to another. Beyond it,
	// Send returns [transport.ErrFull]. Each frame counts as its length plus 64, so
	// that empty frames are bounded too. An empty queue takes a frame of any length.
	// If zero, 4 MiB.
	QueueBytes int
}

// The causes of a [PeerError], besides [transport.ErrClosed].
var (
	// ErrKilled means that the peer was killed.
	ErrKilled = errors.New("killed")
	// ErrNotStarted means that the peer is not started, or that there is no such
	// rank.
	ErrNotStarted = errors.New("not started")
)

// PeerError is the cause that [transport.Handler] gets when a peer is down.
type PeerError struct {
	Peer protocol.Rank
	// Err is [ErrKilled], [ErrNotStarted] or [transport.ErrClosed].
	Err error
}

func (e *PeerError) Error() string { return fmt.Sprintf("mem: rank %d: %v", e.Peer, e.Err) }

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Network connects a group of members in one process. Its methods are safe for
// concurrent use, also from handlers.
type Network struct {
	queueBytes int

	mu      sync.RWMutex // guards members; the mutex of a member may be taken within
	members []*member
}

// NewNetwork makes a network of ranks 0 to size-1, none of which is started.
func NewNetwork(size int, config Config) *Network {
	if config.QueueBytes <= 0 {
		config.QueueBytes = 4 << 20
	}
	n := &Network{queueBytes: config.QueueBytes, members: make([]*member, size)}
	for i := range n.members {
		n.members[i] = newMember(n, protocol.Rank(i), 1)
	}
	return n
}

// Member returns the transport of a rank: the first, of incarnation 1, or the last
// one that [Network.Restart] has made. It panics if there is no such rank.
func (n *Network) Member(rank protocol.Rank) transport.Transport { return n.member(rank) }

func (n *Network) member(rank protocol.Rank) *member {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.members[rank]
}

// Kill ends a member as kill -9 does: at once, with the frames that had arrived for
// it. Its peers get Down, after the frames that it has sent. Kill does not wait for
// a handler call in progress; no other call follows.
func (n *Network) Kill(rank protocol.Rank) { n.member(rank).stop(ErrKilled) }

// Restart returns a new transport for a rank, with the next incarnation. It kills
// the old one if that still runs.
func (n *Network) Restart(rank protocol.Rank) transport.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.members[rank]
	old.stop(ErrKilled)
	n.members[rank] = newMember(n, rank, old.incarnation+1)
	return n.members[rank]
}
