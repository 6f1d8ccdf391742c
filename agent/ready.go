package agent

// An agent is ready when a supervisor may restart the next one: everything that the group
// keeps in memory is at this agent, too. Membership alone does not say that: keys, locks and messages
// arrive later.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
)

// leaveWait bounds how long an agent that ends waits until another one has the keys and locks.
const leaveWait = 15 * time.Second

// lossNotice is how long an agent warns that keys and locks began empty.
const lossNotice = 24 * time.Hour

// losses counts how often keys and locks began empty, because no member had them.
type losses struct {
	count atomic.Uint64
	last  atomic.Pointer[api.Warning] // nil: never
}

// Ready implements [api.Agent]. Its errors name no member: processes of other hosts may ask.
func (a *Agent) Ready() error {
	if err := a.isMember(); err != nil {
		return err
	}
	s := a.services.Load()
	switch {
	case s == nil || !s.started() || !s.shared.Current():
		return fmt.Errorf("%w: keys and locks are on their way", api.ErrNotCurrent)
	case !a.shards.current():
		return fmt.Errorf("%w: shards have not begun", api.ErrNotCurrent)
	case len(stuckConsumers(a.group.Load())) > 0:
		return fmt.Errorf("%w: messages wait to be processed", api.ErrNotCurrent)
	case !a.store.filledIn(a.group.Load()):
		return fmt.Errorf("%w: messages that were sent before it joined are on their way", api.ErrNotCurrent)
	}
	return nil
}

// isMember returns nil while the agent is a member of a group with a quorum.
func (a *Agent) isMember() error {
	g := a.group.Load()
	if g == nil {
		return api.ErrNotMember
	}
	return g.View().Err
}

// started reports whether the services take part in a group.
func (s *services) started() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// filledIn reports whether the log has what was sent before the agent became a member.
func (s *store) filledIn(g *pleach.Group) bool {
	if g == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.entering && s.reached >= g.Self().Incarnation
}

// beganEmpty tells that keys and locks began empty.
func (a *Agent) beganEmpty(view uint64) {
	a.losses.count.Add(1)
	w := &api.Warning{
		Kind: api.WarnKeys, Since: time.Now(),
		Text: fmt.Sprintf("keys and locks began empty in view %d: no member of the group had them", view),
		Next: "put the keys again; restart agents one at a time, each when /readyz of the one before says 200",
	}
	a.losses.last.Store(w)
	a.log.Warn("keys and locks began empty: no member of the group had them", "view", view)
	a.tell(api.Event{Event: api.EventKeysEmpty, View: view, Members: []api.EventMember{}, Reason: w.Text})
}

// handOver waits until another agent has the keys, locks and rollouts, before this one leaves.
func (a *Agent) handOver() {
	s := a.services.Load()
	if s == nil || !s.started() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	if err := errors.Join(s.shared.HandOver(ctx), s.rollouts.shared.HandOver(ctx)); err != nil {
		a.log.Warn("this agent leaves, and no other one has the keys and locks", "waited", leaveWait, "cause", err)
	}
}

// stuckConsumers are the queues of a group that this agent does not process; g may be nil.
func stuckConsumers(g *pleach.Group) []pleach.StuckConsumer {
	if g == nil {
		return nil
	}
	return g.Status().Stuck
}

// stuckWarnings warn of messages that this agent has received and does not process.
func stuckWarnings(stuck []pleach.StuckConsumer) (w []api.Warning) {
	for _, c := range stuck {
		w = append(w, api.Warning{
			Kind: api.WarnStuck, Since: c.Since, Text: fmt.Sprintf("%d messages wait for this agent, which processes none",
				c.Waiting),
			Next: "look for a disk that hangs; if there is none, send SIGQUIT to the agent, and report the goroutines that it prints",
		})
	}
	return w
}

// groupWarnings are those of this host and of its group; g may be nil.
func (a *Agent) groupWarnings(g *pleach.Group) []api.Warning {
	all := append([]api.Warning{}, a.warnings.hostNow()...)
	if g != nil {
		all = append(all, flapping(g.Status().History, time.Now())...)
		all = append(all, stuckWarnings(stuckConsumers(g))...)
	}
	if w := a.losses.last.Load(); w != nil && time.Since(w.Since) < lossNotice {
		all = append(all, *w)
	}
	return slices.Clip(all)
}
