// Package peers is between the view of a process and what is connected to others: it tells
// transports and detectors which processes are members, and the process what they find.
package detection

import (
	"errors"
	"iter"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	machine "github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/member"
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

// Peers returns the members of a view but one as detectors see them, at the addresses where they
// are.
func Peers(v *membership.View, self protocol.Rank, address func(*membership.Member) string) detect.Peers {
	return peers{member.NewWatched(v, self, address)}
}

// peers are members as detectors see them.
type peers struct{ watched *member.Watched }

// Find implements [detect.Peers].
func (p peers) Find(rank protocol.Rank) (detect.Peer, bool) {
	w, ok := p.watched.Find(rank)
	return detect.Peer{
		Rank: w.Rank, Incarnation: w.Incarnation, Address: w.Address, Pause: time.Duration(w.Pause),
	}, ok
}

// Since implements [detect.Peers].
func (p peers) Since(before detect.Peers) iter.Seq[detect.Peer] {
	var known machine.Peers
	if b, ok := before.(peers); ok {
		known = b.watched
	}
	return func(yield func(detect.Peer) bool) {
		for w := range p.watched.Since(known) {
			if peer, _ := p.Find(w.Rank); !yield(peer) {
				return
			}
		}
	}
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
