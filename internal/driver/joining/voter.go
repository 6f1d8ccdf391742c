package joining

// A process with a DataDir that is started again was a member, and has its vote. It
// votes in its old place until a view admits it as a new member there.

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/arbitration"
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

// voter drives a restarted voter.
type voter struct {
	entry     *entry
	place     *membership.SavedVote
	view      atomic.Pointer[membership.View] // latest view, by which the claims of other processes are verified
	machine   *member.RestartedVoter          // used only within node.Do
	node      *node.Node
	transport *tcp.Transport
	detector  *detect.Connections
	addresses string // of the other members, as the transport knows them

	life   context.Context // ends the calls to the arbiter
	end    context.CancelFunc
	asking sync.WaitGroup

	// The outcome; used only within node.Do.
	answer *membership.Answer
	over   bool
}

// newVoter starts to vote, and to ask for a view that admits the candidate in the voter's place.
func newVoter(l *entry, place *membership.SavedVote, candidate *membership.Member) (_ *voter, err error) {
	t, c := &voter{entry: l, place: place}, l.Client
	t.life, t.end = context.WithCancel(context.Background())
	c.Logger.Info("started again: voting in the old place until a view admits this process", "group", c.Group,
		"rank", place.Self.Rank, "incarnation", place.Self.Incarnation, "view", place.View.Number)
	t.machine, err = member.NewRestartedVoter(member.RestartedVoterConfig{
		Saved: place, Candidate: *candidate, Heartbeat: l.Heartbeat, OnView: t.install,
		Save: func(state []byte, sync bool) { l.DataDir.SaveLater(state, sync, t.saved) },
		Ask:  t.asker(),
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
	// The watcher does not handle exclusions: a process that refuses this one because of a later
	// view may belong to another group of this name. Its introduction decides which.
	t.node = node.New(node.Config{
		Transport: t.transport, Protocol: t.machine, Watcher: &detection.Watcher{Connections: t.detector},
		HandleRequest: t.handleRequest,
		AfterStep:     t.afterStep, Logger: c.Logger,
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

// asker returns what asks the arbiter, or nil if there is none.
func (t *voter) asker() func(membership.Claim) {
	if t.entry.Grant == nil {
		return nil
	}
	return arbitration.New(arbitration.Config{
		Grant: t.entry.Grant, Suspicion: t.entry.Heartbeat.Timeout, Life: t.life, Go: t.asking.Go,
		Judge: func(c membership.Claim, v membership.Verdict, _ error) {
			_ = t.node.Do(func(now protocol.Time) { t.machine.Judge(now, c, v) })
		},
		Logger: t.entry.Client.Logger,
	}).Ask
}

// saved is called after each save of the vote, with its error.
func (t *voter) saved(err error) {
	if err != nil {
		t.entry.Client.Logger.Warn("this process does not vote before its state is saved", "group", t.entry.Client.Group,
			"cause", err)
	}
	_ = t.node.Do(func(now protocol.Time) { t.machine.Saved(now, err) })
}

// install handles a view that the machine has installed, within node.Do.
func (t *voter) install(v *membership.View) {
	t.entry.moved(v, t.machine.Machine().DecisionsUpTo(v.Number))
	t.setView(v)
}

// setView updates the members and addresses that the transport and the detector use.
func (t *voter) setView(v *membership.View) {
	where := make(map[protocol.Rank]string, v.Members.Len())
	t.addresses = t.where(v)
	for _, m := range v.Members.All() {
		if m.Rank != t.place.Self.Rank {
			where[m.Rank] = t.entry.address(m)
		}
	}
	address := func(m *membership.Member) string { return cmp.Or(where[m.Rank], m.Address) }
	t.transport.SetView(detection.Roster(v, address))
	t.view.Store(v)
	t.detector.Watch(detection.Peers(v, t.place.Self.Rank, address))
}

// report passes a detector's report on.
func (t *voter) report(r detect.Report) {
	_ = t.node.Do(func(now protocol.Time) {
		t.machine.Report(now, member.Report{Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Cause: r.Cause})
	})
}

// afterStep stores the machine's outcome and signals it, within node.Do.
func (t *voter) afterStep(protocol.Time) {
	answer, err := t.machine.Outcome()
	t.answer, t.over = answer, err != nil
	if answer != nil || t.over {
		notify.Signal(t.entry.changed)
	}
}

// outcome returns the view that admits this process as a new member, or that its old place is
// no longer in a view, or that the arbiter refuses it. It also passes new addresses of other members to the transport.
func (t *voter) outcome() (answer *membership.Answer, over, refused bool) {
	t.node.Look(func() {
		v := t.machine.View()
		answer, over, refused = t.answer, t.over, t.machine.Refused()
		if answer == nil && !over && t.where(&v) != t.addresses {
			t.setView(&v)
		}
	})
	return answer, over, refused
}

// where lists the addresses of the other members.
func (t *voter) where(v *membership.View) string {
	var b strings.Builder
	for _, m := range v.Members.All() {
		if m.Rank != t.place.Self.Rank {
			b.WriteString(t.entry.address(m) + " ")
		}
	}
	return b.String()
}

// waiting returns an error that says how many members are reachable.
func (t *voter) waiting() (err error) {
	_ = t.node.Do(func(protocol.Time) {
		reachable, needed, _ := t.machine.Quorum()
		v := t.machine.View()
		err = fmt.Errorf("%d of %d members of view %d are back, %d needed", reachable, v.Members.Len(), v.Number, needed)
		if t.machine.Refused() {
			err = fmt.Errorf("%w, and the arbiter has let the others continue", err)
		}
	})
	return err
}

// close stops voting. The listener stays open.
func (t *voter) close() {
	t.end()
	_ = t.detector.Close()
	_ = t.node.Close()
	t.asking.Wait()
	t.entry.DataDir.Wait() // a pending save must not overwrite what the member saves
}

// handleRequest answers requests as a process that belongs to a group but is not a member yet.
func (t *voter) handleRequest(_ context.Context, from transport.Client, b []byte, answer func([]byte)) {
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

// force lets the given members decide the next view without a quorum.
func (t *voter) force(number uint64, ranks []protocol.Rank) error {
	err := client.ErrNotAMember
	_ = t.node.Do(func(now protocol.Time) {
		answer, over := t.machine.Outcome()
		if v := t.machine.View(); v.Number > number || answer != nil || over != nil {
			err = nil // already done through another member
			return
		}
		err = t.machine.ForceView(now, ranks)
	})
	return err
}
