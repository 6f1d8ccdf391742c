package broadcast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// How long a burst may take. In the first one, members open their connections. A
// system that does not deliver to all members is given less time, but gets all of it
// again now and then: it may only have been slow.
const (
	limitOfFirst   = bench.Timeout
	limitOfRound   = time.Second
	limitOfBurst   = 30 * time.Second
	limitAfterLoss = 2 * time.Second // of the next burst
	givenUpAfter   = 3               // rounds
	triedAgain     = 10              // rounds after that
	limitGivenUp   = 60 * time.Millisecond
)

// Rounds before those that count: connections open, and delays settle.
const (
	leastWarmUp = 20
	mostWarmUp  = 200
	// warmUpShare is the part of Config.Time that they may take.
	warmUpShare = 4
)

// systemUnderTest is a system that is measured, with its group.
type systemUnderTest struct {
	Result
	group    group
	summary  summary
	before   counts
	bursts   int  // sent so far
	failed   int  // of them, in a row
	external bool // it may lose rounds now and then
}

// Run measures all systems of a config. If ctx ends first, it returns what was
// measured until then, with ctx's error.
func Run(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	all, err := start(ctx, &c)
	defer func() {
		for _, one := range all {
			if closeErr := one.group.close(); closeErr != nil {
				err = errors.Join(err, closeErr)
			}
		}
	}()
	if err == nil {
		err = measure(ctx, &c, all)
	}
	if err != nil && (ctx.Err() == nil || len(all) == 0 || all[0].summary.rounds == 0) {
		return nil, err
	}
	for _, one := range all {
		now, countErr := one.group.counts()
		if err == nil && countErr != nil {
			return nil, countErr
		}
		cpu := one.summary.counts.cpu
		one.summary.counts = now.minus(one.before)
		one.summary.counts.cpu += cpu
		results = append(results, one.summary.result(one.Result))
	}
	return results, err
}

// start makes a group of each system for each number of dead.
func start(ctx context.Context, c *Config) (all []*systemUnderTest, err error) {
	for _, dead := range c.Dead {
		for _, name := range c.Systems {
			if err := ctx.Err(); err != nil {
				return all, err
			}
			one := &systemUnderTest{Result: Result{System: name, Members: c.Members, Dead: dead, Size: c.Size}}
			_, one.external = c.external(name)
			before := bench.Footprint{}
			if c.Footprint {
				before = bench.RestingFootprint(ctx)
			}
			one.group, err = newGroup(ctx, c, name, dead)
			if err != nil {
				return all, err
			}
			all = append(all, one)
			if c.Footprint {
				if err := one.weigh(ctx, before); err != nil {
					return all, err
				}
			}
		}
	}
	return all, nil
}

func newGroup(ctx context.Context, c *Config, name string, dead int) (group, error) {
	if s, ok := c.external(name); ok {
		return newExternalGroup(ctx, c, s)
	}
	p, err := newPlan(c, name, dead)
	if err != nil {
		return nil, err
	}
	if c.Processes {
		return newRemote(ctx, c.Command, p)
	}
	return newLocal(p)
}

// measure warms up, then measures.
func measure(ctx context.Context, c *Config, all []*systemUnderTest) error {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	burst, bursts := c.rounds()
	warmUp := min(max(bursts/10, leastWarmUp), mostWarmUp)
	if c.Rate {
		warmUp = 1
	}
	began := time.Now()
	for done := range warmUp {
		if done > 0 && c.timeIsUp(began, warmUpShare) {
			break
		}
		if err := interleave(ctx, c, all, rng, func(*systemUnderTest, outcome) {}); err != nil {
			return err
		}
	}
	for _, one := range all {
		var err error
		one.before, err = one.group.counts()
		if err != nil {
			return err
		}
		one.failed = 0 // what was slow at first may not be any more
	}
	for done := range bursts {
		if done > 0 && c.timeIsUp(began, 1) {
			break
		}
		err := interleave(ctx, c, all, rng, func(one *systemUnderTest, o outcome) { one.summary.add(burst, o) })
		if err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress((done + 1) * burst)
		}
	}
	return nil
}

// timeIsUp reports whether a share of the time that a config allows has passed.
func (c *Config) timeIsUp(began time.Time, share time.Duration) bool {
	return c.Time > 0 && time.Since(began) > c.Time/share
}

// interleave has all systems send a burst, each time in another order: what one
// leaves behind must not always fall on the same next one.
func interleave(ctx context.Context, c *Config, all []*systemUnderTest, rng *rand.Rand,
	take func(*systemUnderTest, outcome),
) error {
	burst, _ := c.rounds()
	for _, i := range rng.Perm(len(all)) {
		one := all[i]
		o, err := one.group.broadcast(ctx, one.limit(c.Rate))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("bench: %s with %d dead: %w", one.System, one.Dead, err)
		}
		one.bursts++
		one.failed++
		if o.complete == burst {
			one.failed = 0
		}
		take(one, o)
	}
	return nil
}

func (one *systemUnderTest) limit(rate bool) time.Duration {
	switch {
	case rate && one.failed > 0:
		return limitAfterLoss
	case rate:
		return limitOfBurst
	case one.bursts == 0:
		return limitOfFirst
	case one.failed >= givenUpAfter && one.failed%triedAgain != 0 && !one.external:
		return limitGivenUp
	default:
		return limitOfRound
	}
}
