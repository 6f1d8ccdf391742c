package group_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/fault"
)

// newWorldOnHosts makes the processes of a job, each on a loopback address of its own,
// which count as hosts.
func newWorldOnHosts(t *testing.T, size int, bad *fault.Network, change func(*pleach.Config)) []*pleach.World {
	t.Helper()
	listeners, addresses := make([]net.Listener, size), make([]string, size)
	for r := range listeners {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", r+1))
		if err != nil {
			t.Skip(err) // not every system has more than one
		}
		listeners[r], addresses[r] = l, l.Addr().String()
	}
	worlds := make([]*pleach.World, size)
	for r := range worlds {
		inner, err := tcp.New(tcp.Config{
			Group: "job", Rank: protocol.Rank(r), Addresses: addresses, Listener: listeners[r],
			Open: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		c := pleach.Config{
			Group: "job", Addresses: addresses, Rank: r, Network: pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
			Detection: pleach.Detection{SuspicionTimeout: 500 * time.Millisecond}, Job: pleach.Job{QuorumTimeout: time.Second},
		}
		if change != nil {
			change(&c)
		}
		w, err := pleach.NewWorld(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		worlds[r] = w
		t.Cleanup(func() { _ = w.Abort() })
	}
	return worlds
}

// runFault applies a script's line.
func runFault(t *testing.T, bad *fault.Network, line string) {
	t.Helper()
	script, err := fault.Parse(line)
	if err == nil {
		err = bad.Run(t.Context(), script)
	}
	if err != nil {
		t.Error(err)
	}
}

// A partition in the middle of a job: the half with the lowest rank finishes it, the
// other half ends with a QuorumError or learns that it was removed, and owns nothing that
// is not its own.
func TestWorldOnHostsNeedsAQuorum(t *testing.T) {
	const size = 4
	bad := fault.New(1, fault.Config{})
	worlds := newWorldOnHosts(t, size, bad, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var cut atomic.Bool
	errs := inAll(worlds, func(w *pleach.World) error {
		err := iterate(ctx, w, 40, 100, func(round int) {
			if round == 10 && cut.CompareAndSwap(false, true) {
				runFault(t, bad, "partition 0-1 | 2-3")
			}
		})
		if err != nil {
			return err
		}
		return w.Finalize(ctx)
	})
	for r, w := range worlds {
		_, owned := w.FencingToken(2)
		var quorum *pleach.QuorumError
		switch {
		case r < 2 && errs[r] != nil:
			t.Errorf("rank %d: %v", r, errs[r])
		case r >= 2 && !errors.As(errs[r], &quorum):
			t.Errorf("rank %d: %v, want a QuorumError", r, errs[r])
		case r == 3 && (owned || !slices.Equal(w.Tasks(), []int{3})):
			t.Errorf("rank %d owns %v", r, w.Tasks())
		}
	}
	if a, b := worlds[0].Tasks(), worlds[1].Tasks(); len(a) != 2 || len(b) != 2 {
		t.Errorf("after the end, ranks 0 and 1 own %v and %v", a, b)
	}
	token, _ := worlds[0].FencingToken(0)
	old, _ := worlds[3].FencingToken(3)
	if old >= token {
		t.Errorf("the token of a process that was cut off is %d, that of its successor %d", old, token)
	}
}

// A partition in which no part has a quorum heals: the processes go on. One of them may be
// removed, because the others still suspect it when they meet again.
func TestWorldGoesOnWhenThePartitionHeals(t *testing.T) {
	const size = 3
	bad := fault.New(1, fault.Config{})
	worlds := newWorldOnHosts(t, size, bad, func(c *pleach.Config) { c.Job.QuorumTimeout = 30 * time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	finished := 0
	for r, err := range inAll(worlds, func(w *pleach.World) error {
		if err := iterate(ctx, w, 3, 100, func(int) {}); err != nil {
			return err
		}
		if w.Rank() == 0 {
			runFault(t, bad, "partition 0 | 1 | 2")
			testutil.Within(time.Minute, func() bool { return !w.Group().Status().Quorum.OK || ctx.Err() != nil })
			runFault(t, bad, "heal")
		}
		if err := iterate(ctx, w, 10, 100, func(int) {}); err != nil {
			return err
		}
		return w.Finalize(ctx)
	}) {
		if err == nil {
			finished++
		} else if !errors.Is(err, pleach.ErrEvicted) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if finished < 2 {
		t.Errorf("%d processes have finished", finished)
	}
}

// Two processes that cannot reach each other: neither finishes the job, and both say what
// to check.
func TestWorldOfIsolatedProcesses(t *testing.T) {
	addresses := []string{closedAddress(t, "127.0.0.1"), closedAddress(t, "127.0.0.2")}
	worlds := make([]*pleach.World, 2)
	for r := range worlds {
		mine := slices.Clone(addresses)
		mine[1-r] = closedAddress(t, fmt.Sprintf("127.0.0.%d", 2-r)) // where no process is
		var err error
		worlds[r], err = pleach.NewWorld(t.Context(), pleach.Config{
			Group: "job", Addresses: mine, Rank: r,
			Detection: pleach.Detection{StartTimeout: 500 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = worlds[r].Abort() })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for r, err := range inAll(worlds, func(w *pleach.World) error { return iterate(ctx, w, 3, 10, func(int) {}) }) {
		var quorum *pleach.QuorumError
		if !errors.As(err, &quorum) || !strings.Contains(err.Error(), "firewall") {
			t.Errorf("rank %d: %v, want a QuorumError", r, err)
		}
	}
}

// closedAddress is an address at which no process listens.
func closedAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skip(err) // not every system has more than one loopback address
	}
	defer l.Close()
	return l.Addr().String()
}

// Processes that call Finalize at different times: none is taken for dead, so no task
// moves and no Restore is called.
func TestFinalizeMovesNoTask(t *testing.T) {
	const size = 8
	for round := range 30 {
		var restored atomic.Int64
		worlds := newWorlds(t, size, unchanged)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for r, err := range inAll(worlds, func(w *pleach.World) error {
			_, err := collective.Allreduce(ctx, w, []int{1}, collective.Sum[int](),
				collective.Restore(func(context.Context, int) ([]int, error) { restored.Add(1); return []int{1}, nil }))
			if err != nil {
				return err
			}
			began := time.Now()
			if err := w.Finalize(ctx); err != nil {
				return err
			}
			testutil.Took(t, "Finalize", time.Since(began), time.Second)
			if !slices.Equal(w.Tasks(), []int{w.Rank()}) {
				t.Errorf("round %d: rank %d owns %v", round, w.Rank(), w.Tasks())
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if n := restored.Load(); n > 0 {
			t.Errorf("round %d: Restore was called %d times", round, n)
		}
	}
}

// AllowMinority lets each part of a job on several hosts finish it, and warns of that.
func TestWorldAllowsAMinority(t *testing.T) {
	var log testutil.LogBuffer
	addresses := []string{closedAddress(t, "127.0.0.1"), closedAddress(t, "127.0.0.2")}
	w, err := pleach.NewWorld(t.Context(), pleach.Config{
		Group: "job", Addresses: addresses, Detection: pleach.Detection{StartTimeout: 100 * time.Millisecond},
		AllowMinority: true, Logger: log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := iterate(ctx, w, 3, 10, func(int) {}); err != nil {
		t.Error(err)
	}
	if err := w.Finalize(ctx); err != nil {
		t.Error(err)
	}
	if lines := log.Lines("WARN", "AllowMinority", "hosts=2"); len(lines) != 1 {
		t.Errorf("warnings %q", lines)
	}
}
