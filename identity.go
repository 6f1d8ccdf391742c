package pleach

// An ID belongs to one process at a time. The view says to which, the transport accepts
// no other process as that member, and a process that has lost its ID learns it.

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// newNonce draws the number that tells this start of a process from all others.
func newNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:]) | 1
}

// setPeers tells the transport which processes are members; before are those that it
// knows.
func (g *session) setPeers(v *membership.View, before membership.Members) {
	if g.roster != nil {
		g.roster.SetView(rosterView(v))
		return
	}
	if g.addresses == nil {
		return
	}
	for m := range v.Members.Since(before) {
		if m.Rank != g.self.Rank {
			g.addresses.SetPeer(m.Rank, m.Address)
		}
	}
}

// rosterView is a view as a transport sees it. It copies nothing: there may be many
// members, and a transport has a few peers.
func rosterView(v *membership.View) transport.View {
	return transport.View{Number: v.Number, Version: v.Version, Member: func(r protocol.Rank) (transport.Member, bool) {
		m, ok := v.Member(r)
		return transport.Member{Rank: m.Rank, ID: m.Identity, Address: m.Address, Incarnation: m.Incarnation, Nonce: m.Nonce}, ok
	}}
}

// admission is when this member has seen another one join.
type admission struct {
	incarnation uint64
	at          time.Time
}

// noteAdmissions records the members that a view has admitted; before are those of the
// view before.
func (g *session) noteAdmissions(v *membership.View, before membership.Members) {
	if g.admissions == nil {
		g.admissions = make(map[protocol.Rank]admission)
	}
	if v.Number == firstView { // all at once, so that a large group needs no list
		g.firstViewAt = time.Now()
		return
	}
	for rank, a := range g.admissions {
		if m, ok := v.Member(rank); !ok || m.Incarnation != a.incarnation {
			delete(g.admissions, rank)
		}
	}
	for m := range v.Members.Since(before) {
		if m.Incarnation == v.Number {
			g.admissions[m.Rank] = admission{m.Incarnation, time.Now()}
		}
	}
}

// inUse translates the refusal of a candidate whose ID a member has.
func (g *session) inUse(e *membership.InUseError) *control.InUse {
	h := &e.Holder
	return &control.InUse{
		ID: h.Identity, Rank: h.Rank, Address: h.Address, Incarnation: h.Incarnation, View: e.View,
		Since: g.admittedAt(h),
	}
}

// firstView is the number of the view that a group begins with.
const firstView = 1

// admittedAt is when this member has seen another one join. It is zero if it has not.
func (g *session) admittedAt(m *membership.Member) time.Time {
	if m.Incarnation == firstView {
		return g.firstViewAt
	}
	return g.admissions[m.Rank].at
}

// watcher passes what the transport finds out about processes to the detector of
// connections and to the member, or to the seat of one.
type watcher struct {
	connections *detect.Connections
	// removed is called if a member of a later view does not let this process connect.
	removed func(view uint64, holder *membership.Member)
	// early, if not nil, is called if a peer does not know yet that this process has
	// joined.
	early func(peer protocol.Rank)
}

// Up implements [node.Watcher].
func (w *watcher) Up(peer protocol.Rank, incarnation uint64) { w.connections.Up(peer, incarnation) }

// Down implements [node.Watcher].
func (w *watcher) Down(peer protocol.Rank, cause error) {
	var removed *transport.RemovedError
	switch {
	case errors.As(cause, &removed):
		w.removed(removed.View, holderOf(removed))
		return
	case errors.Is(cause, transport.ErrOtherProcess):
		w.connections.Replaced(peer)
		return
	case errors.Is(cause, tcp.ErrEarly) && w.early != nil:
		w.early(peer)
	}
	w.connections.Down(peer, cause)
}

// removed says that a member of a later view does not let this process connect.
func (g *session) removed(view uint64, holder *membership.Member) {
	_ = g.node.Do(func(now protocol.Time) { g.inputs.Removed(now, view, holder) })
}

func holderOf(e *transport.RemovedError) *membership.Member {
	if e.Holder == nil {
		return nil
	}
	return &membership.Member{Identity: e.Holder.ID, Address: e.Holder.Address, Incarnation: e.Holder.Incarnation}
}

// successorTimeout bounds how long a process that was removed asks whether another one
// has its ID, and askedMembers how many members it asks.
const (
	successorTimeout = 500 * time.Millisecond
	askedMembers     = 3
)

// endEvicted ends the membership of a process that was removed. The view that it was
// removed by may be an old one: if another process has joined with its ID since, it must
// not rejoin. So it asks the others first. It is called within node.Do.
func (g *session) endEvicted(err error) {
	if g.evicted {
		return
	}
	g.evicted = true
	if g.roster != nil {
		g.roster.SetView(transport.View{Number: g.view.Load().Number}) // no member is dialed any more
	}
	g.detector.Watch(detect.PeerList(nil))
	evicted := publicError(err)
	g.removal.Store(&evicted) // Broadcast returns it already
	var e *membership.EvictedError
	if !errors.As(err, &e) || e.Successor != nil || g.config.Transport != nil {
		g.endRemoved(evicted)
		return
	}
	var members []string
	for _, m := range g.view.Load().Members.All() {
		if m.Rank != g.self.Rank && len(members) < askedMembers {
			members = append(members, m.Address)
		}
	}
	g.asking.Go(func() {
		e := *e
		e.Successor = g.findSuccessor(members, e.By)
		g.endRemoved(publicError(&e))
	})
}

// endRemoved ends the membership and logs why.
func (g *session) endRemoved(err error) {
	var replaced *ReplacedError
	if errors.As(err, &replaced) {
		g.log.Warn("replaced", "view", replaced.By, "id", replaced.ID, "by", replaced.Address, "incarnation", replaced.Incarnation)
	}
	g.end(err)
}

// findSuccessor asks members for their views, and returns the member that has this
// process's ID, or nil if none has or no member answers.
func (g *session) findSuccessor(members []string, since uint64) *membership.Member {
	ctx, cancel := context.WithTimeout(g.life, successorTimeout)
	defer cancel()
	views := make(chan membership.View, len(members))
	for _, address := range members {
		g.asking.Go(func() {
			v, _ := fetchView(&g.config, ctx, address)
			views <- v
		})
	}
	for range members {
		v := <-views
		if v.Number < since {
			continue // it is behind, or has not answered
		}
		return v.Successor(&g.self)
	}
	return nil
}

// replacedMeanwhile translates the error of a Rejoin that is refused because another
// process has this one's ID.
func (g *session) replacedMeanwhile(err error) error {
	var inUse *IdentityInUseError
	if !errors.As(err, &inUse) {
		return err
	}
	return &ReplacedError{
		Rank: g.Rank(), View: g.view.Load().Number, By: inUse.View,
		ID: inUse.ID, Address: inUse.Address, Incarnation: inUse.Incarnation,
	}
}
