package agent

import (
	"context"
	"iter"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/kv"
)

// Get implements [api.Keys].
func (a *Agent) Get(ctx context.Context, key string) (*api.Entry, error) {
	return served(ctx, a, func(s *services) (*api.Entry, error) {
		e, err := s.keys.Get(ctx, key)
		return entryOf(e), err
	})
}

// List implements [api.Keys].
func (a *Agent) List(ctx context.Context, prefix string) (*api.Entries, error) {
	return served(ctx, a, func(s *services) (*api.Entries, error) {
		entries, err := s.keys.List(ctx, prefix)
		list := &api.Entries{Entries: make([]api.Entry, len(entries))}
		for i, e := range entries {
			list.Entries[i] = *entryOf(e)
		}
		return list, err
	})
}

func entryOf(e kv.Entry) *api.Entry {
	return &api.Entry{Key: e.Key, Version: e.Version, Payload: api.NewPayload(e.Value)}
}

// Put implements [api.Keys].
func (a *Agent) Put(ctx context.Context, key string, value []byte, version uint64) (*api.Changed, error) {
	return served(ctx, a, func(s *services) (*api.Changed, error) {
		v, err := s.keys.Put(ctx, key, value, version)
		return &api.Changed{Key: key, Version: v}, err
	})
}

// Delete implements [api.Keys].
func (a *Agent) Delete(ctx context.Context, key string, version uint64) (*api.Changed, error) {
	return served(ctx, a, func(s *services) (*api.Changed, error) {
		v, err := s.keys.Delete(ctx, key, version)
		return &api.Changed{Key: key, Version: v}, err
	})
}

// Watch implements [api.Keys]. A watch outlives memberships: changes while the agent was not a
// member are yielded when it is one again.
func (a *Agent) Watch(ctx context.Context, w kv.Watch) (func(context.Context) iter.Seq[api.Change], error) {
	if _, err := a.watchable(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) iter.Seq[api.Change] {
		return func(yield func(api.Change) bool) {
			for ctx.Err() == nil {
				s, err := a.watchable(ctx)
				if err != nil {
					pause(ctx, watchPause)
				} else if !s.watch(ctx, &w, yield) {
					return
				}
			}
		}
	}, nil
}

// watchPause is how often a watch looks whether the agent is a member again.
const watchPause = 100 * time.Millisecond

// watchable returns the services when their state is known: before, there are no keys.
func (a *Agent) watchable(ctx context.Context) (*services, error) {
	return served(ctx, a, func(s *services) (*services, error) { return s, s.replica.Read(ctx, func() {}) })
}

// watch yields what changes, until ctx or the membership ends. It reports false if the watcher
// wants no more.
func (s *services) watch(ctx context.Context, w *kv.Watch, yield func(api.Change) bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.replica.Done():
		case <-ctx.Done():
		}
	}()
	for c := range w.Changes(ctx, s.keys.Store) {
		if !yield(api.Change{Entry: *entryOf(c.Entry), Deleted: c.Deleted}) {
			return false
		}
	}
	return true
}
