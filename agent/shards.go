package agent

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/kv"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/shard"
)

// Shards divide keys of programs among the agents of a group. Which there are is in keys that all
// agents watch, so that all take part: a name, and the number of its partitions.

// handoverTimeout bounds how long an agent that ends takes to hand over what it owns.
const handoverTimeout = 2 * time.Second

// shards are those that this agent takes part in, in one membership.
type shards struct {
	changed notify.Notifier
	putting chan struct{} // held while a set is made, so that the limits count it
	mu      sync.Mutex
	by      map[string]*shard.Shards
	// left counts the sets that were there when this agent got the keys, and have not begun here.
	left int
}

// keepShards takes part in the shards that there are, until ctx ends.
func (a *Agent) keepShards(ctx context.Context, g *pleach.Group) {
	defer a.shards.setAll(nil)
	for ctx.Err() == nil {
		s, err := a.watchable(ctx)
		if err != nil {
			pause(ctx, watchPause)
			continue
		}
		a.shards.setAll(make(map[string]*shard.Shards))
		w := kv.Watch{Prefix: kv.ShardsPrefix}
		a.shards.expect(w.Count(s.keys.Store))
		for c := range w.Changes(ctx, s.keys.Store) {
			partitions, _ := strconv.Atoi(string(c.Value)) // 0 if it is deleted
			if err := a.shards.set(g, strings.TrimPrefix(c.Key, kv.ShardsPrefix), partitions, c.Version); err != nil {
				a.log.Error("no shards", "key", c.Key, "cause", err)
			}
			a.shards.began()
		}
	}
}

// expect says how many sets are to begin.
func (s *shards) expect(sets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = sets
}

// began says that another set has begun.
func (s *shards) began() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = max(0, s.left-1)
}

// current reports whether this agent takes part in all sets that were there when it got the keys.
func (s *shards) current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by != nil && s.left == 0
}

// setAll replaces all shards, and ends those that there were.
func (s *shards) setAll(by map[string]*shard.Shards) {
	s.mu.Lock()
	old := s.by
	s.by = by
	s.mu.Unlock()
	var ending sync.WaitGroup
	for _, o := range old {
		ending.Go(func() { end(o) })
	}
	ending.Wait()
}

func end(s *shard.Shards) {
	ctx, cancel := context.WithTimeout(context.Background(), handoverTimeout)
	defer cancel()
	_ = s.Leave(ctx) // the others wait for its lease then
}

// set begins shards with so many partitions; 0: it ends them. Tokens are above the version of the
// key, which rises even if shards were deleted, or all agents have stopped.
func (s *shards) set(g *pleach.Group, name string, partitions int, version uint64) (err error) {
	s.mu.Lock()
	old := s.by[name]
	delete(s.by, name)
	s.mu.Unlock()
	if old != nil {
		end(old)
	}
	if partitions == 0 {
		return nil
	}
	floor := func() uint64 { return version }
	now, err := shard.New(g, shard.Config{Name: name, Partitions: partitions, TokenFloor: floor})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[name] = now
	s.changed.Notify()
	return nil
}

func (s *shards) get(name string) *shard.Shards {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[name]
}

// shardsOf returns shards of a name. It waits for those that there are, but that this agent does not
// take part in yet.
func (a *Agent) shardsOf(ctx context.Context, name string) (*shard.Shards, error) {
	for {
		changed := a.shards.changed.Wait()
		if s := a.shards.get(name); s != nil {
			return s, nil
		}
		if _, err := a.Get(ctx, kv.ShardsPrefix+name); errors.Is(err, kv.ErrNotFound) {
			return nil, api.ErrNoShards
		} else if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// PutShards implements [api.Shards]. The number of partitions of shards does not change: a key would
// have another owner, and the old one would not know.
func (a *Agent) PutShards(ctx context.Context, name string, partitions int) (*api.Changed, error) {
	select {
	case a.shards.putting <- struct{}{}:
		defer func() { <-a.shards.putting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	key := kv.ShardsPrefix + name
	for {
		e, err := a.Get(ctx, key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			b, _ := e.Bytes()
			if there, _ := strconv.Atoi(string(b)); there != partitions {
				return nil, &api.PartitionsError{Name: name, Partitions: there, Asked: partitions}
			}
			return &api.Changed{Key: key, Version: e.Version}, nil
		}
		if err := a.roomForShards(ctx, partitions); err != nil {
			return nil, err
		}
		changed, err := a.Put(ctx, key, strconv.AppendInt(nil, int64(partitions), 10), kv.Absent)
		var raced *kv.ConflictError
		if !errors.As(err, &raced) {
			return changed, err
		}
	}
}

// roomForShards returns an error if the group would have too many shards. Clients of several agents at
// once may exceed the limits by one set for each agent.
func (a *Agent) roomForShards(ctx context.Context, partitions int) error {
	all, err := a.List(ctx, kv.ShardsPrefix)
	if err != nil {
		return err
	}
	there := &api.ShardsFullError{Sets: len(all.Entries)}
	for _, e := range all.Entries {
		n, _ := strconv.Atoi(e.Data)
		there.Partitions += n
	}
	if there.Sets >= api.MaxShards || there.Partitions+partitions > api.MaxShardPartitions {
		return there
	}
	return nil
}

// DeleteShards implements [api.Shards].
func (a *Agent) DeleteShards(ctx context.Context, name string) (*api.Changed, error) {
	return a.Delete(ctx, kv.ShardsPrefix+name, kv.Any)
}

// ShardOf implements [api.Shards].
func (a *Agent) ShardOf(ctx context.Context, name, key string) (*api.Shard, error) {
	s, err := a.shardsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	result := &api.Shard{Name: name, Partition: s.Partition(key)}
	err = s.Serve(ctx, key, func(_ context.Context, token uint64) error {
		result.Mine, result.Token = true, token
		return nil
	})
	var other *shard.NotOwnerError
	if err != nil && !errors.As(err, &other) {
		return nil, err
	}
	if owner, ok := s.Owner(key); ok {
		result.Owner = &api.MemberRef{Rank: owner.Member.Rank, ID: owner.Member.ID}
	}
	return result, nil
}

// Owners implements [api.Shards].
func (a *Agent) Owners(ctx context.Context, name string) (*api.Owners, error) {
	s, err := a.shardsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	list := &api.Owners{Name: name, Owners: []api.PartitionOwner{}}
	now, cancel := context.WithCancel(ctx)
	cancel() // the present owners, and none to come
	for c := range s.Changes(now) {
		if c.Owner == nil {
			continue
		}
		owner := api.PartitionOwner{Partition: c.Partition, MemberRef: api.MemberRef{
			Rank: c.Owner.Member.Rank,
			ID:   c.Owner.Member.ID,
		}}
		if owner.Rank == g.Rank() {
			owner.Token = c.Owner.Token
		}
		list.Owners = append(list.Owners, owner)
	}
	return list, nil
}
