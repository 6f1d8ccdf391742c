package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/services/rollouts"
	"github.com/pleach-go/pleach/protocol"
)

// What this process does for the rollouts of its group.

// follow has a goroutine work for each rollout that this process has a task of.
func (r *Rollouts) follow() {
	for {
		changed, viewed := r.config.Table.changed.Wait(), r.views.Wait()
		for _, id := range r.tasks() {
			r.running.Go(func() { r.work(id) })
		}
		select {
		case <-changed:
		case <-viewed: // this process may have joined again
		case <-r.life.Done():
			return
		case <-r.config.Replica.Done():
			return
		}
	}
}

func (r *Rollouts) self() rollouts.Process {
	m := r.group.Self()
	return rollouts.Process{ID: m.ID, Incarnation: m.Incarnation}
}

// tasks returns the rollouts that this process has a task of, and no goroutine works for.
func (r *Rollouts) tasks() (ids []string) {
	self := r.self()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config.Table.use(func(state *rollouts.Table) {
		for _, o := range state.Rollouts() {
			if _, ok := state.Task(o.ID, self); ok && !r.working[o.ID] {
				r.working[o.ID] = true
				ids = append(ids, o.ID)
			}
		}
	})
	return ids
}

// work does the tasks of a rollout, one after the other.
func (r *Rollouts) work(id string) {
	for r.life.Err() == nil {
		self := r.self()
		k, data, ok := r.next(id, self)
		if !ok {
			return
		}
		c := k.Command(self, r.perform(&k, data))
		if _, err := r.propose(r.life, &c); err != nil {
			r.done(id) // this process is no longer a member
			return
		}
	}
}

// next returns the next task of a rollout, and what it needs. It is not ok if there is none, and then
// no goroutine works for the rollout any more.
func (r *Rollouts) next(id string, self rollouts.Process) (k rollouts.Task, data Release, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config.Table.use(func(state *rollouts.Table) {
		k, ok = state.Task(id, self)
		if !ok {
			delete(r.working, id)
			return
		}
		o := *k.Rollout
		k.Rollout = &o // the table changes its own
		data = Release{ID: o.ID, Name: o.Name, Gate: o.Gate, Data: o.Payload}
		if k.Kind == rollouts.TakeBack {
			data.Data = o.Revert
		}
	})
	return k, data, ok
}

// done says that no goroutine works for a rollout any more.
func (r *Rollouts) done(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, id)
}

var errCannotRevert = errors.New("this process cannot revert")

// perform does a task, and returns why it could not.
func (r *Rollouts) perform(k *rollouts.Task, data Release) (failure string) {
	f := map[rollouts.Kind]func(context.Context, Release) error{
		rollouts.Put: r.config.Apply, rollouts.Ask: r.config.Gate, rollouts.TakeBack: r.config.Revert,
	}[k.Kind]
	if f == nil && k.Kind == rollouts.TakeBack {
		return errCannotRevert.Error()
	}
	if f == nil {
		return ""
	}
	ctx, cancel := context.WithTimeoutCause(r.life, time.Duration(k.Rollout.Timeout),
		fmt.Errorf("no result within %v", time.Duration(k.Rollout.Timeout)))
	defer cancel()
	err := f(ctx, data)
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	case err.Error() == "":
		return "failed"
	}
	return err.Error()
}

// keepTime proposes what this process has to when a time is over, or the view has changed.
func (r *Rollouts) keepTime() {
	var clock rollouts.Clock
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed, viewed := r.config.Table.changed.Wait(), r.views.Wait()
		v, now := r.view(), protocol.Time(time.Since(r.began))
		var next rollouts.Command
		var at protocol.Time
		var ok bool
		r.config.Table.use(func(state *rollouts.Table) { next, at, ok = clock.Next(now, state, &v, r.self()) })
		if ok && at <= now {
			if _, err := r.propose(r.life, &next); err != nil {
				return // this process is no longer a member
			}
			continue
		}
		timer.Stop()
		if ok {
			timer.Reset(time.Duration(at - now))
		}
		select {
		case <-changed:
		case <-viewed:
		case <-timer.C:
		case <-r.life.Done():
			return
		case <-r.config.Replica.Done():
			return
		}
	}
}
