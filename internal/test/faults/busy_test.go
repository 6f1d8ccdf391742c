package faults

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// minutes is how long a busy host is watched: PLEACH_MINUTES, or four
// times SuspicionTimeout.
func minutes() time.Duration {
	return time.Duration(testutil.Minutes.OrFloat(0.1) * float64(time.Minute))
}

// Members that get to run only now and then suspect themselves first: a busy host, which
// is the third variant of case 6, removes no member. With short timeouts, members that do
// not doubt themselves would.
func TestBusyHost(t *testing.T) {
	for name, c := range map[string]struct {
		members, loops    int
		interval, timeout time.Duration
	}{
		"defaults":       {100, 1, 0, 0},
		"short timeouts": {20, 8, 20 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if c.timeout > 0 && !testutil.Full.On() {
				t.Skip("timeouts of a few scheduler slices hold only where nothing else runs: PLEACH_FULL=1")
			}
			groups := start(t, c.members, func(config *pleach.Config) {
				config.Detection.HeartbeatInterval, config.Detection.SuspicionTimeout = c.interval, c.timeout
			})
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			for range c.loops {
				go burn(ctx)
			}
			time.Sleep(minutes())
			removed := 0
			for _, g := range groups {
				if v := g.View(); v.Number != 1 || v.Size() != c.members {
					t.Errorf("rank %d is in view %d of %d members, %v", g.Rank(), v.Number, v.Size(), g.Err())
					removed = max(removed, c.members-v.Size())
				}
			}
			figures(t, map[string]any{"case": 6, "variant": "busy host, " + name, "members": c.members, "removed": removed})
		})
	}
}

// burn uses a processor until ctx ends.
func burn(ctx context.Context) {
	for n := 0; ctx.Err() == nil; {
		for range 1 << 20 {
			n += n>>1 + 1
		}
	}
}
