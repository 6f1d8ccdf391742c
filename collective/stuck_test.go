package collective

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// stuckTimeout is after which time processes are removed that are stuck.
const stuckTimeout = time.Second

// Every process is stopped at each of its events, in each collective. If it comes back soon,
// it is not removed, and all have the right results. If it does not, it is removed, and the
// others have them. No process waits for much longer than it must. They run in virtual time.
func TestEveryStuckProcessAtEveryStep(t *testing.T) {
	count := 0
	sizes := []int{3, 4, 5}
	switch {
	case testutil.Full.On():
	case testutil.RaceEnabled || testing.Short():
		sizes = sizes[:1]
	default:
		sizes = sizes[:2]
	}
	for _, size := range sizes {
		// A process alone in a call of two is no majority, and removes nobody: see ADR 47.
		all := slices.DeleteFunc(append(samples(), repairs()...), func(s sample) bool { return s.name == "split" })
		for i, s := range all {
			c := trial{calls: []sample{s, all[(i+3)%len(all)]}, size: size}
			events := c.stuckEvents(t)
			for victim := range size {
				for at := 1; at <= events[victim]; at++ {
					for _, stuck := range []time.Duration{stuckTimeout / 4, 10 * stuckTimeout} {
						count++
						c.stops, c.stuck, c.seed = map[int]int{victim: at}, stuck, uint64(count)
						c.checkStuck(t, s.name)
					}
				}
			}
		}
	}
	t.Logf("%d cases", count)
}

// repairs are the calls that agree on something.
func repairs() []sample {
	return []sample{
		{
			name: "agree",
			run: func(ctx context.Context, e Comm, _ int, got func(int, string)) error {
				value, err := Agree(ctx, e, 6)
				if err == nil {
					got(e.Rank(), fmt.Sprint(value))
				}
				return err
			},
			want: func(int, int, int) string { return "6" }, quiet: true,
		},
		{
			name: "shrink",
			run: func(ctx context.Context, e Comm, _ int, got func(int, string)) error {
				sub, err := e.Shrink(ctx)
				if err == nil {
					err = Barrier(ctx, sub)
				}
				return err
			},
			want: func(int, int, int) string { return "" },
		},
	}
}

// stuckEvents returns how many events each process has.
func (c *trial) stuckEvents(t *testing.T) (events []int) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		events, err = c.run(t)
		if err != nil {
			t.Fatal(err)
		}
	})
	return events
}

func (c *trial) checkStuck(t *testing.T, name string) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := c.run(t)
		if err == nil && c.took > 3*stuckTimeout {
			err = fmt.Errorf("the others took %v", c.took)
		}
		if soon := c.stuck < stuckTimeout; err == nil && soon && c.removed > 0 {
			err = fmt.Errorf("%d processes were removed", c.removed)
		}
		if err != nil {
			t.Fatalf("%s, %d processes, %v stopped for %v: after %v: %v", name, c.size, c.stops, c.stuck, time.Since(began), err)
		}
	})
}
