package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lab/bench"
)

// At full rate every member broadcasts as fast as its window allows, and so do processes that
// are started later. What a fleet is capable of depends on the host, so the same members
// do the same as one group afterwards, over the same delays.

// sampleAtFullRate is of how many messages one is timed at full rate.
const sampleAtFullRate = 64

// keepAll is how much all members keep together at full rate, which fills all logs.
const keepAll = 2 << 30

// limits are those of the groups: defaults, unless many members fill their logs at once.
func (c *Config) limits() (l pleach.Limits) {
	if each := keepAll / 4 / (c.Zones * c.Members); c.full() && each < 16<<20 {
		l.KeepBytes, l.InboxBytes = each, each
	}
	return l
}

// fullRate has all members broadcast until ctx ends.
func (r *run) fullRate(ctx context.Context, sending *sync.WaitGroup) {
	started := make(map[*member]bool)
	for ctx.Err() == nil {
		for _, m := range r.live() {
			if started[m] {
				continue
			}
			started[m] = true
			sending.Go(func() {
				for ctx.Err() == nil && m.Err() == nil {
					r.broadcast(context.WithoutCancel(ctx), m)
				}
			})
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// groupTime is how much shorter than a fleet's the time of a group's broadcasts is.
const groupTime = 3

// oneGroup measures the rate of the same members when they are one group.
func (r *run) oneGroup(ctx context.Context, result *Result) error {
	groups, err := r.startGroup(ctx)
	defer func() {
		for _, g := range groups {
			_ = g.Abort()
		}
	}()
	if err != nil {
		return fmt.Errorf("bench: one group: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.Time/groupTime)
	defer cancel()
	var sent atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for _, g := range groups {
		running.Go(func() {
			for g.Broadcast(ctx, r.payload()) == nil {
				sent.Add(1)
			}
		})
		running.Go(func() {
			for range g.Messages(ctx) {
				continue
			}
		})
	}
	running.Wait()
	result.GroupPerOrigin = bench.Round(float64(sent.Load())/time.Since(began).Seconds()/float64(len(groups)), 0)
	result.RateRatio = bench.Round(result.PerOrigin/max(result.GroupPerOrigin, 1), 2)
	return nil
}

// startGroup starts one member at each address of the zones.
func (r *run) startGroup(ctx context.Context) (groups []*pleach.Group, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	config := func(s *site, i int) pleach.Config {
		return pleach.Config{
			Group: "one", ID: fmt.Sprintf("%s.%d", s.name, i), Listen: s.addresses[i],
			Detection: pleach.Detection{HeartbeatInterval: zoneHeartbeat},
			Limits:    r.config.limits(), Network: pleach.Network{Dial: r.wan.dial(s.host)},
		}
	}
	first, err := pleach.Create(ctx, config(r.sites[0], 0))
	if err != nil {
		return nil, err
	}
	groups = append(groups, first)
	var joining sync.WaitGroup
	var mu sync.Mutex
	for _, s := range r.sites {
		for i := range s.addresses {
			if s.addresses[i] == first.Self().Address {
				continue
			}
			joining.Go(func() {
				g, joinErr := pleach.Join(ctx, config(s, i), first.Self().Address)
				mu.Lock()
				defer mu.Unlock()
				if err = errors.Join(err, joinErr); joinErr == nil {
					groups = append(groups, g)
				}
			})
		}
	}
	joining.Wait()
	return groups, err
}
