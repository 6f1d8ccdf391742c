package agent

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/agent/kv"
	"github.com/pleach-go/pleach/shard"
)

// Shards divide keys of programs among the agents of a group. Which there are is in keys that all
// agents watch, so that all take part: a name, and the number of its partitions.

// handoverTimeout bounds how long an agent that ends takes to hand over what it owns.
const handoverTimeout = 2 * time.Second

// shards are those that this agent takes part in, in one membership.
type shards struct {
	mu sync.Mutex
	by map[string]*shard.Shards
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
		for c := range w.Changes(ctx, s.keys.Store) {
			partitions, _ := strconv.Atoi(string(c.Value)) // 0 if it is deleted
			if err := a.shards.set(g, strings.TrimPrefix(c.Key, kv.ShardsPrefix), partitions); err != nil {
				a.log.Error("no shards", "key", c.Key, "cause", err)
			}
		}
	}
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
	_ = s.Close(ctx) // the others wait for its lease then
}

// set begins shards with so many partitions; 0: it ends them.
func (s *shards) set(g *pleach.Group, name string, partitions int) (err error) {
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
	now, err := shard.New(g, shard.Config{Name: name, Partitions: partitions})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[name] = now
	return nil
}

func (s *shards) get(name string) *shard.Shards {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[name]
}

// PutShards implements [api.Shards].
func (a *Agent) PutShards(ctx context.Context, name string, partitions int) (*api.Changed, error) {
	return a.Put(ctx, kv.ShardsPrefix+name, strconv.AppendInt(nil, int64(partitions), 10), kv.Any)
}

// DeleteShards implements [api.Shards].
func (a *Agent) DeleteShards(ctx context.Context, name string) (*api.Changed, error) {
	return a.Delete(ctx, kv.ShardsPrefix+name, kv.Any)
}

// ShardOf implements [api.Shards].
func (a *Agent) ShardOf(ctx context.Context, name, key string) (*api.Shard, error) {
	s := a.shards.get(name)
	if s == nil {
		return nil, api.ErrNoShards
	}
	result := &api.Shard{Name: name, Partition: s.Partition(key)}
	err := s.Serve(ctx, key, func(_ context.Context, token uint64) error {
		result.Mine, result.Token = true, token
		return nil
	})
	var other *shard.NotOwnerError
	if err != nil && !errors.As(err, &other) {
		return nil, err
	}
	if owner, ok := s.Owner(key); ok {
		result.Owner = &api.MemberRef{Rank: owner.Member.Rank, ID: owner.Member.ID}
		result.Token = owner.Token
	}
	return result, nil
}

// Owners implements [api.Shards].
func (a *Agent) Owners(ctx context.Context, name string) (*api.Owners, error) {
	s := a.shards.get(name)
	if s == nil {
		return nil, api.ErrNoShards
	}
	list := &api.Owners{Name: name, Owners: []api.PartitionOwner{}}
	now, cancel := context.WithCancel(ctx)
	cancel() // the present owners, and none to come
	for c := range s.Changes(now) {
		if c.Owner != nil {
			list.Owners = append(list.Owners, api.PartitionOwner{Partition: c.Partition, MemberRef: api.MemberRef{Rank: c.Owner.Member.Rank, ID: c.Owner.Member.ID}, Token: c.Owner.Token})
		}
	}
	return list, nil
}
