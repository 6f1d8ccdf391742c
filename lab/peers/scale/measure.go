package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// result has names and meaning of the fields of pleach-lab bench scale that these systems
// have, too. Of a view change they have only that all survivors know of a death.
type result struct {
	System     string  `json:"system"`
	Members    int     `json:"members"`
	StartMS    float64 `json:"start_ms"`
	HeapKB     float64 `json:"heap_kb_per_member"`
	StackKB    float64 `json:"stack_kb_per_member"`
	Goroutines float64 `json:"goroutines_per_member"`
	IdleCPU    float64 `json:"idle_cpu_percent"`
	Kills      int     `json:"kills"` // at once
	Rounds     int     `json:"rounds"`
	Complete   int     `json:"complete"`
	ViewP50    float64 `json:"view_p50_ms"`
	ViewP99    float64 `json:"view_p99_ms"`
}

// limitOfKill is how long survivors may take: with many members, a suspicion alone lasts
// for ten seconds and more.
const limitOfKill = time.Minute

// member is a member of either system.
type member interface {
	address() string
	// join exchanges all state with a member.
	join(address string) error
	// knows is how many members it has in its list.
	knows() int
	// kill ends it without leaving.
	kill() error
}

// starters start a member. It calls lost with the rank of each member that it drops.
var starters = map[string]func(rank int, lost func(rank int)) (member, error){
	"memberlist": startMemberlist,
	"serf":       startSerf,
}

// group is all members of a group.
type group struct {
	members []member // by rank; nil: dead
	mu      sync.Mutex
	victim  int
	missing map[int]bool   // survivors that have not dropped the victim yet
	done    chan time.Time // gets when the last one has
}

func measure(ctx context.Context, c *command, name string, members int) (r result, err error) {
	r.System, r.Members, r.Kills = name, members, 1
	before, began := bench.RestingFootprint(ctx), time.Now()
	g := &group{members: make([]member, members)}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.start(ctx, name); err != nil {
		return r, fmt.Errorf("%s with %d members: %w", name, members, err)
	}
	r.StartMS = bench.Millis(time.Since(began))
	after, n := bench.RestingFootprint(ctx), float64(members)
	r.HeapKB = bench.Round((float64(after.Heap)-float64(before.Heap))/1e3/n, 1)
	r.StackKB = bench.Round((float64(after.Stack)-float64(before.Stack))/1e3/n, 1)
	r.Goroutines = bench.Round(float64(after.Goroutines-before.Goroutines)/n, 1)
	cpu := bench.ProcessorTime()
	rest(ctx, c.idle)
	r.IdleCPU = bench.Round((bench.ProcessorTime()-cpu).Seconds()*100/c.idle.Seconds()/n, 4)
	var took []time.Duration
	for i := range c.kills {
		if d, ok := g.kill(ctx, (i+1)*members/(c.kills+1)); ok {
			took = append(took, d)
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Rounds++
	}
	slices.Sort(took)
	r.Complete = len(took)
	r.ViewP50, r.ViewP99 = bench.Millis(bench.Percentile(took, 50)), bench.Millis(bench.Percentile(took, 99))
	return r, nil
}

// start starts all members, and has all join by rank 0, which then knows all, and once
// more to learn of those that came later. Gossip does the same, but a busy host loses
// it, and the next full exchange is half a minute away.
func (g *group) start(ctx context.Context, name string) (err error) {
	for rank := range g.members {
		g.members[rank], err = starters[name](rank, func(lost int) { g.lost(rank, lost) })
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	for range 2 {
		for rank, m := range g.members[1:] {
			if err := errors.Join(ctx.Err(), m.join(g.members[0].address())); err != nil {
				return fmt.Errorf("rank %d: %w", rank+1, err)
			}
		}
	}
	deadline := time.Now().Add(limitOfKill)
	for !g.complete() {
		rest(ctx, 20*time.Millisecond)
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(errors.New("not all members know all"), ctx.Err())
		}
	}
	return nil
}

// complete reports whether all members know all.
func (g *group) complete() bool {
	return !slices.ContainsFunc(g.members, func(m member) bool { return m.knows() < len(g.members) })
}

// kill kills a member, and waits until all survivors have dropped it.
func (g *group) kill(ctx context.Context, victim int) (time.Duration, bool) {
	killed := g.members[victim]
	g.members[victim] = nil
	done := make(chan time.Time, 1)
	g.mu.Lock()
	g.victim, g.missing, g.done = victim, map[int]bool{}, done
	for rank, m := range g.members {
		if m != nil {
			g.missing[rank] = true
		}
	}
	g.mu.Unlock()
	began := time.Now()
	_ = killed.kill() // it is dead either way
	select {
	case at := <-done:
		return at.Sub(began), true
	case <-time.After(limitOfKill):
	case <-ctx.Done():
	}
	return 0, false
}

// lost notes that a member has dropped another.
func (g *group) lost(at, lost int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done == nil || lost != g.victim || !g.missing[at] {
		return
	}
	delete(g.missing, at)
	if len(g.missing) == 0 {
		g.done <- time.Now()
	}
}

func (g *group) close() error {
	errs := make([]error, len(g.members))
	var closing sync.WaitGroup
	for rank, m := range g.members {
		if m != nil {
			closing.Go(func() { errs[rank] = m.kill() })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
