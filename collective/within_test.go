package collective

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// A process is alive and comes to no call. An Agree or a Shrink with a deadline removes it and
// goes on; one without waits as long as its context says.
func TestWithinRemovesThoseThatDoNotCome(t *testing.T) {
	calls := map[string]func(context.Context, Comm, ...Option) (int, error){
		"agree": func(ctx context.Context, c Comm, options ...Option) (int, error) {
			got, err := Agree(ctx, c, 6|uint64(c.Rank()), options...)
			return int(got), err
		},
		"shrink": func(ctx context.Context, c Comm, options ...Option) (int, error) {
			sub, err := c.Shrink(ctx, options...)
			if err != nil {
				return 0, err
			}
			return sub.Size(), Barrier(ctx, sub)
		},
	}
	want := map[string]int{"agree": 6, "shrink": 3}
	for name, call := range calls {
		for _, within := range []time.Duration{0, stuckTimeout} {
			synctest.Test(t, func(t *testing.T) {
				var n *network
				n = newNetworkWith(t, 4, 1, engineConfig(false), func(_ int, e *engine.Config) {
					e.Evict = func(rank int, _ error) { go n.doom(map[int]int{rank: 0}) }
				})
				defer n.close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*stuckTimeout)
				defer cancel()
				began := time.Now()
				n.each(func(c Comm) error {
					if c.Rank() == 3 {
						time.Sleep(5 * stuckTimeout)
						return nil
					}
					var options []Option
					if within > 0 {
						options = append(options, Within(within))
					}
					got, err := call(ctx, c, options...)
					took := time.Since(began)
					switch {
					case within == 0 && err == nil:
						t.Errorf("%s without a deadline did not wait for rank 3", name)
					case within > 0 && (err != nil || got != want[name] || took > 3*within):
						t.Errorf("%s of rank %d: got %d, %v after %v", name, c.Rank(), got, err, took)
					}
					return nil
				})
			})
		}
	}
}

func TestWithinIsForAgreements(t *testing.T) {
	n := newNetwork(t, 1, 1)
	defer n.close()
	n.each(func(c Comm) error {
		if err := Barrier(t.Context(), c, Within(time.Second)); err == nil {
			t.Error("a Barrier took a deadline of its own")
		}
		if _, err := Agree(t.Context(), c, 1, Within(-1)); err == nil {
			t.Error("an Agree took a deadline in the past")
		}
		return nil
	})
}
