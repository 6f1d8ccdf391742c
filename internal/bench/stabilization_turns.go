package bench

import (
	"context"
	"errors"
)

// StabilizeInTurns measures several systems side by side: each in turn, some of its
// kills at a time, so that what else the host does falls on all of them alike. Only
// one group runs at a time. A system that fails does not keep others from being
// measured; its error is returned with what was measured.
func StabilizeInTurns(ctx context.Context, systems []Stabilization, turns int) ([]StabilizationResult, error) {
	results := make([]StabilizationResult, len(systems))
	failed := make([]error, len(systems))
	for turn := range turns {
		for i, c := range systems {
			all := c.Kills
			c.Kills = all*(turn+1)/turns - all*turn/turns
			if c.Kills == 0 || failed[i] != nil || ctx.Err() != nil {
				continue
			}
			c.Seed += uint64(turn) << 32 // others are killed in each turn
			var r StabilizationResult
			r, failed[i] = Stabilize(ctx, c)
			results[i] = c.together(results[i], r)
		}
	}
	return results, errors.Join(errors.Join(failed...), ctx.Err())
}

// together sums up two measurements of one system.
func (c *Stabilization) together(a, b StabilizationResult) StabilizationResult {
	sum := c.result(append(a.kills, b.kills...))
	sum.Views, sum.Evicted = a.Views+b.Views, a.Evicted+b.Evicted
	return sum
}
