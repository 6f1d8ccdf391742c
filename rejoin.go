package pleach

// A group outlives the memberships of its process. This file drives a [lifecycle.Returning],
// which decides whether a process that was removed joins again, and when.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/prefetch"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/protocol"
)

// staying decides whether this process joins again after the end of a membership.
type staying struct {
	life    context.Context // ends with the last membership, if Config.Recovery.Rejoin is set
	end     context.CancelCauseFunc
	wanted  context.Context // ends when the program wants to leave
	callOff context.CancelCauseFunc
	renewed notify.Notifier // notifies of another membership, and of messages that the last one has left
	driver  sync.WaitGroup
	// mu is for backoff, which Rejoin waits by if Config.Recovery.Rejoin is not set.
	mu      sync.Mutex
	backoff lifecycle.Backoff
}

func (s *staying) init() {
	s.life, s.end = context.WithCancelCause(context.Background())
	s.wanted, s.callOff = context.WithCancelCause(context.Background())
}

// readInterval is how often a process that was too slow looks whether its program receives.
const readInterval = 50 * time.Millisecond

// stay joins again after each membership, until this process is to stay out.
func (g *Group) stay() {
	var r lifecycle.Returning
	start := time.Now()
	now := func() protocol.Time { return protocol.Time(time.Since(start)) + 1 }
	for {
		s := g.session()
		r.Began(now())
		<-s.life.Done()
		s.receiver.keepUnread()
		r.Ended(now(), endingOf(s.Err()))
		if err := g.comeBack(s, &r, now); err != nil {
			g.end(err)
			return
		}
	}
}

// comeBack joins again. It returns nil when this process is a member, and otherwise why it
// stays out.
func (g *Group) comeBack(s *session, r *lifecycle.Returning, now func() protocol.Time) error {
	for cause := s.Err(); ; {
		switch r.Next(now()).(type) {
		case lifecycle.End:
			return cause
		case lifecycle.Again:
			if g.wanted.Err() != nil {
				return context.Cause(g.wanted)
			}
			err := g.rejoin(g.wanted, s)
			if err == nil {
				return nil
			}
			if g.wanted.Err() == nil {
				s.log.Warn("cannot join again", "cause", err)
			}
			r.Failed(now(), !passes(err))
			cause = err
			continue
		}
		wait := time.Duration(min(r.Deadline()-now(), protocol.Time(time.Minute)))
		if r.Unread() {
			if g.allRead() {
				r.Reading()
				continue
			}
			wait = readInterval
		}
		select {
		case <-time.After(wait):
		case <-g.wanted.Done():
			return context.Cause(g.wanted)
		}
	}
}

// passes reports whether an attempt to join again has failed for a reason that may pass. A data
// directory that cannot be used is no mistake in the settings then, but a disk that is full: it was
// used before.
func passes(err error) bool {
	var setting *ConfigError
	return errors.As(err, &setting) && setting.Field == "Recovery.DataDir" || !client.Permanent(err)
}

// endingOf is how a membership has ended.
func endingOf(err error) lifecycle.Ending {
	switch {
	case errors.Is(err, ErrEvicted):
		return lifecycle.Evicted
	case errors.Is(err, ErrTooSlow):
		return lifecycle.TooSlow
	}
	return lifecycle.Departed
}

// allRead reports whether the program has received all that was left of a membership.
func (g *Group) allRead() bool {
	g.topics.mu.Lock()
	defer g.topics.mu.Unlock()
	return g.delivery.prefetched.Empty() && !g.delivery.dispatching.Load() &&
		!slices.ContainsFunc(g.topics.list, func(t *Subscription) bool { return !t.prefetched.Empty() })
}

// goesOn waits, after a membership has ended, for the next one, or for what was left of it to
// read. It reports false if there is neither, or ctx or done ends first; unread and done may be
// nil.
func (g *Group) goesOn(ctx context.Context, s *session, unread *prefetched, done <-chan struct{}) bool {
	for {
		renewed := g.renewed.Wait()
		switch {
		case g.session() != s, unread != nil && !unread.Empty():
			return true
		case g.Err() != nil:
			return false
		}
		select {
		case <-renewed:
		case <-g.life.Done():
		case <-ctx.Done():
			return false
		case <-done:
			return false
		}
	}
}

// SetSeeds replaces the seeds that this process has joined by. A member asks them whether
// the group has continued without it when it has no quorum, so a program whose seeds have moved
// to other addresses meanwhile calls it then.
func (g *Group) SetSeeds(seeds ...string) {
	s := g.session()
	s.catchUp.SetSeeds(slices.DeleteFunc(slices.Clone(seeds), func(seed string) bool { return seed == s.Self().Address }))
}

// Rejoin makes this process a member again after [ErrEvicted] and [ErrTooSlow]: it aborts
// the membership that it has, and joins the group with the same ID and address, so that it
// gets its old rank if that is free. What was given to the group stays: handlers, and
// subscriptions. [Group.Messages] and each subscription then first yield a [*GapError]. With
// Config.Recovery.Rejoin, a group does all that automatically, and Rejoin only waits for it. A
// process that is removed again and again, each time within a minute, waits before it joins: 2 s,
// then twice as long each time, up to 30 s.
//
// After [ErrReplaced], or if another process with its ID has joined meanwhile, Rejoin
// returns a [*ReplacedError]: this process stays out. The seeds are those of Join or
// [Group.SetSeeds], and the members of the last view that this process has seen.
// Config.Network.Transport ended with the membership and is not used again, nor are
// Config.Detection.Detectors but those that are a [detect.Renewer].
func (g *Group) Rejoin(ctx context.Context) error {
	s := g.session()
	if !g.config.Recovery.Rejoin {
		s.receiver.keepUnread()
		if err := g.pause(ctx, time.Since(s.ending.joined)); err != nil {
			return s.wrap("rejoin", err)
		}
		return s.wrap("rejoin", g.rejoin(ctx, s))
	}
	for s.Err() != nil {
		if !g.goesOn(ctx, s, nil, nil) {
			return s.wrap("rejoin", errors.Join(ctx.Err(), g.Err()))
		}
		s = g.session()
	}
	return nil
}

// pause waits before this process joins again, after a membership that has lasted for a
// while.
func (g *Group) pause(ctx context.Context, lasted time.Duration) error {
	g.mu.Lock()
	pause := g.backoff.Removed(protocol.Time(lasted))
	g.mu.Unlock()
	select {
	case <-time.After(time.Duration(pause)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rejoin joins again after a membership.
func (g *Group) rejoin(ctx context.Context, old *session) error {
	if old.machine.Static() {
		return ErrStatic
	}
	aborting, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	if err := old.abort(aborting); err != nil {
		return err
	}
	if errors.Is(old.Err(), ErrReplaced) {
		return old.Err()
	}
	c, seeds := old.successor()
	if len(seeds) == 0 {
		return errors.New("the last view had no other member")
	}
	s, err := prepare(ctx, &c, modeJoin,
		func(c *Config) (*initialState, error) { return joinState(c, ctx, seeds, settingsOf(c)) })
	if err != nil {
		return old.replacedMeanwhile(err)
	}
	if err := g.enter(c, s, nil, &GapError{From: old.view.Load().Number, To: s.view.Number, Err: old.Err()}); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// successor returns the settings of the next membership, and where it looks for the group.
func (g *session) successor() (Config, []string) {
	c := g.config
	c.Recovery.Replace = false
	c.Addresses, c.Rank, c.Network.Transport, c.Detection.Detectors, c.Detection.StartTimeout, c.Expect = nil, 0, nil,
		nil, 0, 0
	for _, d := range g.config.Detection.Detectors {
		if r, ok := d.(detect.Renewer); ok {
			c.Detection.Detectors = append(c.Detection.Detectors, r.Renew())
		}
	}
	self := g.Self()
	c.ID, c.Advertise, c.Listen, c.Meta, c.Observer = self.ID, self.Address, g.network.listening, self.Meta, self.Observer
	return c, g.catchUp.Seeds()
}

// keepUnread takes what waits for the program out of a member that has ended: the program
// receives it before the GapError.
func (r *receiver) keepUnread() {
	_ = r.node.Do(func(now protocol.Time) {
		if r.replica.lacking() {
			return
		}
		r.prefetched.Keep(func() {
			for r.stream.Pending() > 0 {
				r.machine.DeliverEach(now, prefetch.Count, r.prefetched.add)
			}
			for i, ok := r.direct.deliverDirect(); ok; i, ok = r.direct.deliverDirect() {
				r.prefetched.Add(i)
			}
		})
		for id, t := range r.topics {
			t.prefetched.Keep(func() {
				for r.stream.PendingTopic(id) > 0 {
					r.machine.DeliverTopicEach(now, id, prefetch.Count, t.prefetched.add)
				}
			})
		}
	})
	r.group.renewed.Notify() // a goroutine that receives may have seen the end before what is left
	if r.config.OnMessage != nil {
		r.pending.Store(true)
		r.dispatch()
	}
}

// announce makes the subscriptions of the group this member's, and puts the markers of a gap
// and of the first view before what the program receives. It is called before the member
// begins, with topics locked.
func (r *receiver) announce(gap *GapError) {
	r.replica.gap = gap
	r.progress.Begin(r.view.Load().Number, gap != nil || r.replica.lacking(), r.config.OnMessage != nil)
	queues := []*prefetched{&r.prefetched}
	for _, t := range r.group.topics.list {
		r.subscribe(t, gap)
		queues = append(queues, &t.prefetched)
	}
	if gap != nil {
		for _, q := range queues {
			q.Keep(func() { q.Add(item{Message: Message{View: gap.To}, gap: gap}) })
			q.Drained.Store(false)
		}
		r.pending.Store(true)
	}
	if !r.replica.lacking() {
		r.announceCurrent()
	}
	if r.config.OnView != nil {
		r.mark(item{Message: Message{View: r.view.Load().Number}, begins: true})
	}
}

// announceCurrent puts the marker for OnCurrent before what follows.
func (r *receiver) announceCurrent() {
	if r.config.OnCurrent != nil {
		r.mark(item{Message: Message{View: r.view.Load().Number}, current: true})
	}
}

// mark puts a marker behind what waits for Messages or OnMessage.
func (r *receiver) mark(i item) {
	r.prefetched.Keep(func() { r.prefetched.Add(i) })
	r.prefetched.Drained.Store(false)
	r.pending.Store(true)
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
