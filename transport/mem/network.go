// Package mem connects members that live in one process. It is what tests run
// on, and programs with many ranks in one process.
//
// It has no timers and no hidden delays, so tests on it are as exact as their
// goroutines, and instant in a testing/synctest bubble. To make it as bad as a
// real network, wrap it with package fault.
package mem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Config is how a network is made. Its zero value is good.
type Config struct {
	// QueueBytes bounds what is queued from one member to another. Each frame
	// counts as its length and 64 more, so that empty ones are bounded too. An
	// empty queue takes a frame of any length. 0 means 4 MiB.
	QueueBytes int
}

// Why a member is not reached, besides [transport.ErrClosed].
var (
	// ErrKilled: it was killed.
	ErrKilled = errors.New("killed")
	// ErrNotStarted: it is not running yet, or its rank is nobody's.
	ErrNotStarted = errors.New("not started")
)

// PeerError is the cause that a Handler is given when a peer is down.
type PeerError struct {
	Peer protocol.Rank
	// Err is ErrKilled, ErrNotStarted or [transport.ErrClosed].
	Err error
}

func (e *PeerError) Error() string { return fmt.Sprintf("mem: rank %d: %v", e.Peer, e.Err) }

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Network is a group of members in one process. Its methods may be called from
// several goroutines, and from handlers.
type Network struct {
	queueBytes int

	// mu guards all that follows and all of every member: what is done under
	// it is short, and one lock cannot be taken in the wrong order. Handlers are
	// called without it.
	mu      sync.Mutex
	members []*member
}

// NewNetwork makes a network of ranks 0 to size-1. None runs until it is started.
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

// Member returns the transport of a rank: the first, of incarnation 1, or the
// one that [Network.Restart] has put in its place. It panics if there is no such rank.
func (n *Network) Member(rank protocol.Rank) transport.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.members[rank]
}

// Kill ends a member as kill -9 does: at once, with what had arrived for it, and
// its peers are told Down. What it has sent still arrives. A call of its handler
// under way is not waited for; no other one follows.
func (n *Network) Kill(rank protocol.Rank) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members[rank].stop(ErrKilled)
}

// Restart returns a new transport for a rank, with the next incarnation. The old
// one is killed if it still runs.
func (n *Network) Restart(rank protocol.Rank) transport.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.members[rank]
	old.stop(ErrKilled)
	n.members[rank] = newMember(n, rank, old.incarnation+1)
	return n.members[rank]
}

// reach returns the member that a frame of another can be handed to, or why
// there is none. A member does not reach itself: there is nothing in between.
func (n *Network) reach(from, to protocol.Rank) (*member, error) {
	if to < 0 || to >= protocol.Rank(len(n.members)) || to == from {
		return nil, ErrNotStarted
	}
	m := n.members[to]
	switch {
	case m.ended != nil:
		return nil, m.ended
	case m.handler == nil:
		return nil, ErrNotStarted
	}
	return m, nil
}
