// Package peers is between the view of a process and what is connected to others: it tells
// transports and detectors which processes are members, and the process what they find.
package detection

import (
	"errors"
	"iter"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Roster returns a view as a transport sees it, with the addresses where members are. It copies
// nothing: there may be many members, and a transport has a few peers.
func Roster(v *membership.View, address func(*membership.Member) string) transport.View {
	return transport.View{
		Number: v.Number, Version: v.Version, Ranks: v.Slots,
		Member: func(r protocol.Rank) (transport.Member, bool) {
			m, ok := v.Member(r)
			return transport.Member{
				Rank: m.Rank, ID: m.Identity, Address: address(&m), Incarnation: m.Incarnation,
				Nonce: m.Nonce,
			}, ok
		},
	}
}

// distantProbeDelay is how long a member that loses its connection to another waits
// before it probes it, if other members are closer to that one. It is longer than a
// view change takes.
const distantProbeDelay = 50 * time.Millisecond

// list has the members of a view as detectors see them. It copies none: there may be many,
// and detectors ask about a few.
type list struct {
	members membership.Members
	self    int // index of this member, which is none of its peers
	address func(*membership.Member) string
}

// listOf returns the members of a view but one.
func listOf(v *membership.View, self protocol.Rank, address func(*membership.Member) string) *list {
	i, _ := v.Members.Index(self)
	return &list{v.Members, i, address}
}

// Find implements [detect.Peers].
func (p *list) Find(rank protocol.Rank) (detect.Peer, bool) {
	i, ok := p.members.Index(rank)
	if !ok || i == p.self {
		return detect.Peer{}, false
	}
	return p.peer(i), true
}

// Since implements [detect.Peers].
func (p *list) Since(before detect.Peers) iter.Seq[detect.Peer] {
	var known membership.Members
	if b, ok := before.(*list); ok {
		known = b.members
	}
	return func(yield func(detect.Peer) bool) {
		for m := range p.members.Since(known) {
			if i, _ := p.members.Index(m.Rank); i != p.self && known.Find(m.Rank) == nil && !yield(p.peer(i)) {
				return
			}
		}
	}
}

// peer returns the member with an index as a peer. The coordinator, its successor and the
// ring neighbors are connected to a member anyway: they probe it at once when the
// connection breaks, and the others leave it to them at first.
func (p *list) peer(i int) detect.Peer {
	m := p.members.At(i)
	peer := detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: p.address(m)}
	if distance := max(i-p.self, p.self-i); p.self > 1 && distance > 1 && distance < p.members.Len()-1 {
		peer.Pause = distantProbeDelay
	}
	if m.Nonce == 0 {
		peer.Incarnation = 0 // which process it is, is known when it connects
	}
	return peer
}

// Watcher passes what the transport finds out about processes to the detector of
// connections and to the member, or to the restarted voter of one. It is a node.Watcher.
type Watcher struct {
	Connections *detect.Connections
	// Removed, if not nil, is called if a member of a later view does not let this process
	// connect. The holder of its place may be nil.
	Removed func(view uint64, holder *membership.Member)
	// Early, if not nil, is called if a peer does not know yet that this process has
	// joined.
	Early func(peer protocol.Rank)
}

// Up says that a peer is connected.
func (w *Watcher) Up(peer protocol.Rank, incarnation uint64) { w.Connections.Up(peer, incarnation) }

// Down says that the connection to a peer is lost, or could not be made.
func (w *Watcher) Down(peer protocol.Rank, cause error) {
	var removed *transport.RemovedError
	var other *transport.OtherProcessError
	switch {
	case errors.As(cause, &removed):
		if w.Removed != nil {
			w.Removed(removed.View, holderOf(removed))
		}
		return
	case errors.As(cause, &other):
		w.Connections.Replaced(peer, other.Incarnation)
		return
	case errors.Is(cause, tcp.ErrEarly) && w.Early != nil:
		w.Early(peer)
	}
	w.Connections.Down(peer, cause)
}

func holderOf(e *transport.RemovedError) *membership.Member {
	if e.Holder == nil {
		return nil
	}
	return &membership.Member{Identity: e.Holder.ID, Address: e.Holder.Address, Incarnation: e.Holder.Incarnation}
}
