package shards

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/shard"
)

// patience is how long anything may take.
const patience = 2 * time.Minute

// work is how long a request takes its owner.
const work = 200 * time.Microsecond

// member is a member with its shards, in place of a process.
type member struct {
	group  *pleach.Group
	shards *shard.Shards
	ended  context.CancelFunc
}

// cluster is all members, by number. One that is down is nil.
type cluster struct {
	c        *Config
	rng      *rand.Rand
	observer observer
	watchers sync.WaitGroup

	mu      sync.RWMutex
	members []*member
}

// Run measures: members are killed, and then all are restarted under load.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	k := &cluster{c: &c, rng: rand.New(rand.NewPCG(c.Seed, 0)), members: make([]*member, c.Members)}
	k.observer.partitions = make([]observed, c.Partitions)
	defer k.end()
	for i := range c.Members {
		if err := k.start(ctx, i); err != nil {
			return Result{}, err
		}
	}
	if err := k.settled(ctx); err != nil {
		return Result{}, err
	}
	r := Result{
		Members: c.Members, Partitions: c.Partitions, LeaseMS: bench.Millis(max(c.Lease, 0)),
		Largest: bench.Round(k.largest(), 2),
	}
	if err := k.kills(ctx, &r); err != nil {
		return r, err
	}
	err := k.restarts(ctx, &r)
	return r, err
}

// start starts a member, which joins those that run.
func (k *cluster) start(ctx context.Context, i int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, config := new(member), pleach.Config{Group: "bench-shards", ID: fmt.Sprint("member-", i)}
	var seeds []string
	for _, other := range k.live() {
		seeds = append(seeds, other.group.Self().Address)
	}
	if len(seeds) == 0 {
		m.group, err = pleach.Create(ctx, config)
	} else {
		m.group, err = pleach.Join(ctx, config, seeds...)
	}
	if err != nil {
		return err
	}
	m.shards, err = shard.New(m.group, shard.Config{Partitions: k.c.Partitions, Lease: k.c.Lease})
	if err != nil {
		return err
	}
	watching, ended := context.WithCancel(context.Background())
	m.ended = ended
	k.watchers.Go(func() {
		for change := range m.shards.Changes(watching) {
			if change.Self {
				k.observer.begins(change.Partition)
			}
		}
	})
	k.set(i, m)
	return nil
}

func (k *cluster) set(i int, m *member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[i] = m
}

// live returns the members that run.
func (k *cluster) live() (live []*member) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, m := range k.members {
		if m != nil {
			live = append(live, m)
		}
	}
	return live
}

// kill has a member crash.
func (m *member) kill() {
	_ = m.group.Abort()
	m.ended()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.shards.Leave(now)
}

// end ends all members at once.
func (k *cluster) end() {
	var all sync.WaitGroup
	for _, m := range k.live() {
		all.Go(m.kill)
	}
	all.Wait()
	k.watchers.Wait()
}

// settled waits until every partition is served.
func (k *cluster) settled(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; {
		served := 0
		for _, m := range k.live() {
			if s := m.shards.Stats(); s.Draining == 0 {
				served += s.Owned
			}
		}
		switch {
		case served == k.c.Partitions:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("bench: %d of %d partitions are served after %v", served, k.c.Partitions, patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// largest is the largest share of a member.
func (k *cluster) largest() (share float64) {
	for _, m := range k.live() {
		share = max(share, float64(m.shards.Stats().Owned)*float64(k.c.Members)/float64(k.c.Partitions))
	}
	return share
}

// begun is how many partitions the members have begun so far.
func (k *cluster) begun() (n int) {
	for _, m := range k.live() {
		n += int(m.shards.Stats().Begun)
	}
	return n
}

// kills kills members, one after the other.
func (k *cluster) kills(ctx context.Context, r *Result) error {
	var again []time.Duration
	var moved, least, movedJoin, leastJoin int
	for trial := range k.c.Trials {
		k.progress(trial, "killing members")
		i := k.rng.IntN(k.c.Members)
		victim := k.members[i]
		its := victim.shards.Stats().Owned
		k.set(i, nil)
		before, died := k.begun(), time.Now()
		victim.kill()
		if err := k.settled(ctx); err != nil {
			return err
		}
		moved, least = moved+k.begun()-before, least+its
		before = k.begun()
		time.Sleep(10 * time.Millisecond) // the last change is on its way to the observer
		again = append(again, k.observer.since(died)...)
		if err := k.start(ctx, i); err != nil {
			return err
		}
		if err := k.owning(ctx, i); err != nil {
			return err
		}
		movedJoin, leastJoin = movedJoin+k.begun()-before, leastJoin+k.members[i].shards.Stats().Owned
		r.Kills++
	}
	r.times(again)
	r.MovedKill, r.MovedJoin = bench.Round(float64(moved)/float64(max(least, 1)), 3),
		bench.Round(float64(movedJoin)/float64(max(leastJoin, 1)), 3)
	return nil
}

// owning waits until a member that has joined has its share, and all partitions are served.
func (k *cluster) owning(ctx context.Context, i int) error {
	share := 0
	list := k.members[i]
	for share == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		share = list.shards.Stats().Owned
	}
	return k.settled(ctx)
}

// restarts restarts all members, one after the other, under load.
func (k *cluster) restarts(ctx context.Context, r *Result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var clients sync.WaitGroup
	for n := range k.c.Clients {
		clients.Go(func() { k.load(ctx, rand.New(rand.NewPCG(k.c.Seed, uint64(n+1)))) })
	}
	defer clients.Wait()
	defer cancel()
	for i := range k.c.Members {
		k.progress(k.c.Trials+i, "restarting members")
		if err := k.restart(ctx, i); err != nil {
			return err
		}
		r.Restarts++
	}
	cancel()
	clients.Wait()
	o := &k.observer
	slices.Sort(o.requests)
	r.Requests, r.Retried = len(o.requests), o.retried
	r.RequestP99, r.RequestMax = bench.Millis(bench.Percentile(o.requests, 99)),
		bench.Millis(bench.Percentile(o.requests, 100))
	r.TwoOwners, r.SameToken, r.OldToken = o.twoOwners, o.sameToken, o.oldToken
	return nil
}

// restart ends a member as an operator does, and starts it again.
func (k *cluster) restart(ctx context.Context, i int) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m := k.members[i]
	err := errors.Join(m.shards.Leave(bounded), m.group.Leave(bounded))
	k.set(i, nil)
	m.kill()
	if err != nil {
		return err
	}
	if err := k.start(ctx, i); err != nil {
		return err
	}
	return k.owning(ctx, i)
}

// load makes requests of a client: it asks any member for the owner of a key, and then that
// one, until it is served.
func (k *cluster) load(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		key := fmt.Sprint("key-", rng.IntN(1<<20))
		began, tries := time.Now(), 1
		for ; ctx.Err() == nil && !k.request(ctx, rng, key); tries++ {
			time.Sleep(time.Millisecond)
		}
		if ctx.Err() == nil {
			k.observer.served(time.Since(began), tries)
		}
	}
}

// request makes one try, and reports whether it was served.
func (k *cluster) request(ctx context.Context, rng *rand.Rand, key string) bool {
	live := k.live()
	owner, ok := live[rng.IntN(len(live))].shards.Owner(key)
	if !ok {
		return false
	}
	for _, m := range live {
		if m.group.Self().Address != owner.Member.Address {
			continue
		}
		return nil == m.shards.Serve(ctx, key, func(_ context.Context, token uint64) error {
			partition := m.shards.Partition(key)
			k.observer.enter(partition, m, token)
			defer k.observer.exit(partition)
			time.Sleep(work)
			return nil
		})
	}
	return false
}

func (k *cluster) progress(done int, what string) {
	if k.c.Progress != nil {
		k.c.Progress(done, what)
	}
}
