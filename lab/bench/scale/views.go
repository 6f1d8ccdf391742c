package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
)

// How long a view change may take, and how long a group rests after one, so that what
// it still has to do counts for it and not for the next.
const (
	limitOfView = 10 * time.Second
	limitOfJoin = 30 * time.Second
	settling    = 100 * time.Millisecond
)

// mostRounds bounds the rounds of one number of kills.
const mostRounds = 20

// awaited is a view that all members are to have.
type awaited struct {
	is   func(*pleach.View) bool
	seen []atomic.Bool // by rank
	left atomic.Int64
	done chan time.Time // gets when the last member had it
}

// expect begins to await a view at so many members.
func (g *group) expect(members int, is func(*pleach.View) bool) *awaited {
	a := &awaited{is: is, seen: make([]atomic.Bool, len(g.members)), done: make(chan time.Time, 1)}
	a.left.Store(int64(members))
	g.awaited.Store(a)
	return a
}

// arrive says that a member has the view, or needs it no more.
func (a *awaited) arrive(rank int) {
	if !a.seen[rank].Swap(true) && a.left.Add(-1) == 0 {
		a.done <- time.Now()
	}
}

// wait returns when the last member had the view, or false if that is too late.
func (a *awaited) wait(ctx context.Context, limit time.Duration) (time.Time, bool) {
	select {
	case at := <-a.done:
		return at, true
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return time.Time{}, false
}

// watch follows a member's views, as a program does.
func (g *group) watch(rank int) {
	m := g.members[rank]
	g.watching.Go(func() {
		for v := range m.Views(g.life) {
			if a := g.awaited.Load(); a != nil && a.is(&v) {
				a.arrive(rank)
			}
		}
		if errors.Is(m.Err(), pleach.ErrEvicted) {
			g.evicted.Add(1)
			if a := g.awaited.Load(); a != nil {
				a.arrive(rank)
			}
		}
	})
}

// killRounds kills so many members at once, again and again while there is time. The
// group is not filled up: it stays about as large, as no more than a tenth of it die.
func (g *group) killRounds(ctx context.Context, dead int, limit time.Duration, rng *rand.Rand) (kills []kill) {
	began := time.Now()
	for killed := dead; ctx.Err() == nil; killed += dead {
		k := g.kill(ctx, g.choose(dead, rng))
		if ctx.Err() == nil || k.complete {
			kills = append(kills, k)
		}
		if len(kills) == mostRounds || time.Since(began) > limit || (killed+dead)*10 > len(g.members) {
			break
		}
	}
	return kills
}

// choose returns the next victims: any but the coordinator, which is the lowest rank.
func (g *group) choose(dead int, rng *rand.Rand) (victims []int) {
	for _, rank := range rng.Perm(len(g.members)) {
		if rank > 0 && g.members[rank] != nil && len(victims) < dead {
			victims = append(victims, rank)
		}
	}
	return victims
}

// kill kills members at once, and waits until all others have a view without them.
func (g *group) kill(ctx context.Context, victims []int) kill {
	killed := make([]*pleach.Group, len(victims))
	for i, rank := range victims {
		killed[i], g.members[rank] = g.members[rank], nil
	}
	survivors := g.live()
	a := g.expect(survivors, func(v *pleach.View) bool {
		return !slices.ContainsFunc(victims, v.Has)
	})
	before, number := g.load(), g.members[0].View().Number
	var dying sync.WaitGroup
	for i, rank := range victims {
		g.network.kill(rank)
		dying.Go(func() { _ = killed[i].Abort() }) // it is dead either way
	}
	at, ok := a.wait(ctx, limitOfView)
	rest(ctx, settling)
	did := g.since(before)
	dying.Wait()
	each := float64(survivors)
	return kill{
		complete: ok, took: at.Sub(before.at), frames: did.frames / each, cpu: float64(did.cpu.Nanoseconds()) / 1e3 / each,
		views: g.members[0].View().Number - number,
	}
}

// seeds is how many members a joiner knows.
const seeds = 3

// join has so many processes join at once, in the place of as many that died. It
// returns when all members have a view with all of them.
func (g *group) join(ctx context.Context, joiners int) (took time.Duration, views int, err error) {
	var known []string
	for _, m := range g.members[:min(seeds, len(g.members))] {
		if m != nil {
			known = append(known, m.Self().Address)
		}
	}
	size := g.members[0].Size() + joiners
	free := g.free(joiners)
	a := g.expect(g.live()+joiners, func(v *pleach.View) bool { return v.Size() >= size })
	ctx, cancel := context.WithTimeout(ctx, limitOfJoin)
	defer cancel()
	began, number := time.Now(), g.members[0].View().Number
	errs := make([]error, joiners)
	var joining sync.WaitGroup
	for i, index := range free {
		joining.Go(func() {
			g.members[index], errs[i] = pleach.Join(ctx, pleach.Config{Group: groupName}, known...)
			if errs[i] == nil {
				g.watch(index)
			}
		})
	}
	joining.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, 0, fmt.Errorf("bench: %w", err)
	}
	at, ok := a.wait(ctx, limitOfJoin)
	if !ok {
		return 0, 0, nil
	}
	return at.Sub(began), int(g.members[0].View().Number - number), nil
}

// free returns the indices of dead members.
func (g *group) free(most int) (free []int) {
	for i, m := range g.members {
		if m == nil && len(free) < most {
			free = append(free, i)
		}
	}
	return free
}
