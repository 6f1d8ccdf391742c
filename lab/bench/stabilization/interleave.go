package stabilization

import (
	"context"
	"errors"
)

// RunInterleaved measures several systems in so many rounds, in each some of the
// kills of every system, so that other load of the host falls on all alike. Only
// one group runs at a time. A system that fails does not keep others from being
// measured; its error is returned with what was measured.
func RunInterleaved(ctx context.Context, systems []Config, rounds int) ([]Result, error) {
	results := make([]Result, len(systems))
	failed := make([]error, len(systems))
	for round := range rounds {
		for i, c := range systems {
			c = c.turn(round, rounds)
			if c.Kills == 0 || failed[i] != nil || ctx.Err() != nil {
				continue
			}
			var r Result
			r, failed[i] = Run(ctx, c)
			results[i] = c.merge(results[i], r)
		}
	}
	return results, errors.Join(errors.Join(failed...), ctx.Err())
}

// turn is what of a config is measured in one of so many rounds.
func (c Config) turn(round, rounds int) Config {
	c.Kills = c.Kills*(round+1)/rounds - c.Kills*round/rounds
	c.Seed += uint64(round) << 32 // other members are killed in each round
	return c
}

// merge adds up two measurements of one system.
func (c *Config) merge(a, b Result) Result {
	sum := c.result(append(a.kills, b.kills...))
	sum.Views, sum.Evicted = a.Views+b.Views, a.Evicted+b.Evicted
	return sum
}
