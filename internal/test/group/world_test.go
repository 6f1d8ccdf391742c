package group_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/fault"
)

// newWorlds makes the processes of a job, all in this one, over loopback.
func newWorlds(t *testing.T, size int,
	wrap func(protocol.Rank, transport.Transport) transport.Transport,
) []*pleach.World {
	t.Helper()
	listeners, addresses := make([]net.Listener, size), make([]string, size)
	for r := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
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
		w, err := pleach.NewWorld(t.Context(), pleach.Config{
			Group: "job", Addresses: addresses, Rank: r, Network: pleach.Network{Transport: wrap(protocol.Rank(r), inner)},
		})
		if err != nil {
			t.Fatal(err)
		}
		worlds[r] = w
		t.Cleanup(func() { _ = w.Abort() })
	}
	return worlds
}

func unchanged(_ protocol.Rank, t transport.Transport) transport.Transport { return t }

// inAll runs a program as every process.
func inAll(worlds []*pleach.World, program func(w *pleach.World) error) []error {
	errs := make([]error, len(worlds))
	var all sync.WaitGroup
	for r, w := range worlds {
		all.Go(func() { errs[r] = program(w) })
	}
	all.Wait()
	return errs
}

// iterate is a job of many allreduces and broadcasts: each result is checked.
func iterate(ctx context.Context, w *pleach.World, rounds, length int, before func(round int)) error {
	input := func(task, round int) []int64 {
		in := make([]int64, length)
		for i := range in {
			in[i] = int64(task*round + i)
		}
		return in
	}
	n := int64(w.Size())
	for round := range rounds {
		before(round)
		sum, err := collective.Allreduce(ctx, w, input(w.Rank(), round), collective.Sum[int64](),
			collective.Restore(func(_ context.Context, task int) ([]int64, error) { return input(task, round), nil }))
		if err != nil {
			return err
		}
		for i, got := range sum {
			if want := n*(n-1)/2*int64(round) + n*int64(i); got != want {
				return fmt.Errorf("rank %d, round %d: element %d is %d, want %d", w.Rank(), round, i, got, want)
			}
		}
		root := round % w.Size()
		all, err := collective.Broadcast(ctx, w, root, input(root, round),
			collective.Restore(func(context.Context, int) ([]int64, error) { return input(root, round), nil }))
		if err != nil {
			return err
		}
		if !slices.Equal(all, input(root, round)) {
			return fmt.Errorf("rank %d, round %d: the broadcast of root %d differs", w.Rank(), round, root)
		}
	}
	return nil
}

func TestWorld(t *testing.T) {
	worlds := newWorlds(t, 5, unchanged)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for r, err := range inAll(worlds, func(w *pleach.World) error {
		if err := iterate(ctx, w, 10, 1000, func(int) {}); err != nil {
			return err
		}
		if err := iterate(ctx, w, 2, 700_000, func(int) {}); err != nil { // 5.6 MB
			return err
		}
		return w.Finalize(ctx)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestWorldOnABadNetwork(t *testing.T) {
	bad := fault.New(1, fault.Config{})
	worlds := newWorlds(t, 5, bad.Wrap)
	script, err := fault.Parse(`
		drop 5%
		duplicate 5%
		reorder 5% within 3ms
		at 50ms  reset 2
		at 100ms freeze 3
		at 300ms thaw 3
		at 350ms reset 4`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var ran sync.WaitGroup
	defer ran.Wait()
	ran.Go(func() { _ = bad.Run(ctx, script) })
	for r, err := range inAll(worlds, func(w *pleach.World) error { return iterate(ctx, w, 20, 20_000, func(int) {}) }) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	cancel()
}

// Processes die at random moments; all others get the right results, down to the
// last.
func TestWorldOutlivesItsProcesses(t *testing.T) {
	const size, rounds = 6, 30
	worlds := newWorlds(t, size, unchanged)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	dies := make([]int, size) // at which round
	for i, r := range rng.Perm(size)[:size-1] {
		dies[r] = 1 + 5*i
	}
	errs := inAll(worlds, func(w *pleach.World) error {
		return iterate(ctx, w, rounds, 100, func(round int) {
			if at := dies[w.Rank()]; at > 0 && round == at {
				_ = w.Abort()
			}
		})
	})
	for r, err := range errs {
		if died := dies[r] > 0; died != (err != nil) || died && !errors.Is(err, pleach.ErrClosed) {
			t.Errorf("rank %d, which dies in round %d: %v", r, dies[r], err)
		}
	}
	if t.Failed() {
		t.Logf("seed %d: %v", seed, dies)
	}
}

// Without views: processes that die before or during it cost a corrected call
// nothing.
func TestWorldCorrected(t *testing.T) {
	const size, f = 7, 2
	worlds := newWorlds(t, size, unchanged)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	results := make([]uint64, size)
	errs := inAll(worlds, func(w *pleach.World) error {
		if err := collective.Barrier(ctx, w); err != nil {
			return err
		}
		if w.Rank() == 3 || w.Rank() == 5 {
			return w.Abort()
		}
		sum, err := collective.Allreduce(ctx, w, []uint64{1 << w.Rank()}, collective.Sum[uint64](), collective.Corrected(f))
		if err == nil {
			results[w.Rank()] = sum[0]
		}
		return err
	})
	for r, got := range results {
		if died := r == 3 || r == 5; !died && (errs[r] != nil || got != results[0] || got|1<<3|1<<5 != 1<<size-1) {
			t.Errorf("rank %d: %b, %v", r, got, errs[r])
		}
	}
}

// Nothing hangs: every call returns by its deadline, whatever the network does.
func TestWorldCallsObeyTheirDeadlines(t *testing.T) {
	for _, line := range []string{
		"drop 100%", "cut 0 3", "partition 0-1 | 2-4", "freeze 2", "kill 1", "at 20ms reset 3",
		"delay 2s",
	} {
		t.Run(line, func(t *testing.T) {
			bad := fault.New(1, fault.Config{})
			worlds := newWorlds(t, 5, bad.Wrap)
			script, err := fault.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			for _, err := range inAll(worlds, func(w *pleach.World) error {
				if err := iterate(ctx, w, 3, 10, func(int) {}); err != nil {
					return err
				}
				if w.Rank() == 0 {
					_ = bad.Run(ctx, script)
				}
				for {
					if err := iterate(ctx, w, 1, 10_000, func(int) {}); err != nil {
						return err
					}
				}
			}) {
				var late *collective.TimeoutError
				var abort *collective.AbortError
				if !errors.As(err, &late) && !errors.As(err, &abort) && !errors.Is(err, pleach.ErrEvicted) {
					t.Errorf("got %v", err)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
