package joining

// A process with a DataDir that is started again was a member, and has its vote. It
// takes its old seat until a view has the new process in its place.

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/detection"
	"github.com/pleach-go/pleach/internal/driver/node"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// seat drives the seat of a member that was started again.
type seat struct {
	entry     *entry
	place     *membership.Seat
	view      atomic.Pointer[membership.View] // the latest, with which other processes are verified
	machine   *member.Seat                    // used only within node.Do
	node      *node.Node
	transport *tcp.Transport
	detector  *detect.Connections
	addresses string // of the other members, as the transport knows them

	// The outcome; used only within node.Do.
	answer *membership.Answer
	over   bool
}

// newSeat begins to vote, and to ask for a view with a candidate in the place.
func newSeat(l *entry, place *membership.Seat, candidate *membership.Member) (_ *seat, err error) {
	t, c := &seat{entry: l, place: place}, l.Client
	c.Logger.Info("started again: voting in the old place until the group goes on", "group", c.Group, "rank", place.Self.Rank, "incarnation", place.Self.Incarnation, "view", place.View.Number)
	t.machine, err = member.NewSeat(member.SeatConfig{
		Seat: place, Candidate: *candidate, Heartbeat: l.Heartbeat, OnView: t.install,
		Save: func(state []byte, sync bool) { l.Folder.SaveLater(state, sync, t.saved) },
	})
	if err != nil {
		return nil, err
	}
	addresses := make([]string, place.View.Slots)
	for _, m := range place.View.Members.All() {
		addresses[m.Rank] = l.address(m)
	}
	t.view.Store(&place.View)
	config := c.Config(l.lent)
	config.Rank, config.Incarnation, config.Nonce = place.Self.Rank, place.Self.Incarnation, place.Self.Nonce
	config.Addresses, config.Open, config.SharedBytes = addresses, true, l.SharedBytes
	config.Verify = func(claim tcp.Claim) error { return l.Verify(t.view.Load(), claim) }
	t.transport, err = tcp.New(config)
	if err != nil {
		return nil, err
	}
	t.detector = detect.NewConnections(detect.ConnectionsConfig{Dial: c.Dial})
	// A process that refuses this one because of a later view may be of another group of this
	// name. What it introduces itself as tells more.
	t.node = node.New(node.Config{
		Transport: t.transport, Protocol: t.machine, Watcher: &detection.Watcher{Connections: t.detector}, HandleRequest: t.handleRequest,
		AfterStep: t.afterStep, Logger: c.Logger,
	})
	if err := t.detector.Start(t.report); err != nil {
		return nil, err
	}
	t.setView(&place.View)
	if err := t.node.Start(); err != nil {
		return nil, err
	}
	return t, t.node.Do(t.machine.Start)
}

// saved says that the vote is on the disk, or why it is not.
func (t *seat) saved(err error) {
	if err != nil {
		t.entry.Client.Logger.Warn("this process does not vote before its state is saved", "group", t.entry.Client.Group, "cause", err)
	}
	_ = t.node.Do(func(now protocol.Time) { t.machine.Saved(now, err) })
}

// install takes a view that the seat has installed, within node.Do.
func (t *seat) install(v *membership.View) {
	t.entry.moved(v, t.machine.Machine().DecisionsUpTo(v.Number))
	t.setView(v)
}

// setView tells the transport and the detector which processes are members, and where
// they are.
func (t *seat) setView(v *membership.View) {
	var watched []detect.Peer
	where := make(map[protocol.Rank]string, v.Members.Len())
	t.addresses = t.where(v)
	for _, m := range v.Members.All() {
		if m.Rank != t.place.Self.Rank {
			where[m.Rank] = t.entry.address(m)
			watched = append(watched, detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: where[m.Rank]})
		}
	}
	t.transport.SetView(detection.Roster(v, func(m *membership.Member) string { return cmp.Or(where[m.Rank], m.Address) }))
	t.view.Store(v)
	t.detector.Watch(detect.PeerList(watched))
}

// report passes a detector's report on.
func (t *seat) report(r detect.Report) {
	_ = t.node.Do(func(now protocol.Time) {
		t.machine.Report(now, member.Report{Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Cause: r.Cause})
	})
}

// afterStep looks whether the seat is over, within node.Do.
func (t *seat) afterStep(protocol.Time) {
	answer, err := t.machine.Outcome()
	t.answer, t.over = answer, err != nil
	if answer != nil || t.over {
		notify.Signal(t.entry.changed)
	}
}

// outcome returns the view in which this process is a new member, or that the place is
// over. It also looks whether a process has moved meanwhile.
func (t *seat) outcome() (answer *membership.Answer, over bool) {
	t.node.Look(func() {
		v := t.machine.View()
		answer, over = t.answer, t.over
		if answer == nil && !over && t.where(&v) != t.addresses {
			t.setView(&v)
		}
	})
	return answer, over
}

// where lists the addresses of the other members.
func (t *seat) where(v *membership.View) string {
	var b strings.Builder
	for _, m := range v.Members.All() {
		if m.Rank != t.place.Self.Rank {
			b.WriteString(t.entry.address(m) + " ")
		}
	}
	return b.String()
}

// waiting says how many members are back.
func (t *seat) waiting() (err error) {
	_ = t.node.Do(func(protocol.Time) {
		reachable, needed, _ := t.machine.Quorum()
		v := t.machine.View()
		err = fmt.Errorf("%d of %d members of view %d are back, %d needed", reachable, v.Members.Len(), v.Number, needed)
	})
	return err
}

// close ends the seat. Its socket goes on listening.
func (t *seat) close() {
	_ = t.detector.Close()
	_ = t.node.Close()
	t.entry.Folder.Wait() // or it would come after what the member saves
}

// handleRequest answers requests: this process is in a group, but not a member yet.
func (t *seat) handleRequest(_ context.Context, from transport.Client, b []byte, answer func([]byte)) {
	v := t.view.Load()
	request, err := t.entry.Client.OpenRequest(v, from, b)
	if err != nil {
		answer(client.Refuse(err))
		return
	}
	if r, ok := request.(control.Force); ok {
		answer(t.entry.Client.Answer(v, from, r, t.force(r.View, r.Ranks)))
		return
	}
	answer(t.entry.requested(request))
}

// force lets some members go on without a quorum.
func (t *seat) force(number uint64, ranks []protocol.Rank) error {
	err := client.ErrNotAMember
	_ = t.node.Do(func(now protocol.Time) {
		answer, over := t.machine.Outcome()
		if v := t.machine.View(); v.Number > number || answer != nil || over != nil {
			err = nil // another member was asked first, and it is done
			return
		}
		err = t.machine.ForceView(now, ranks)
	})
	return err
}
