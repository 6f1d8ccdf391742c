package collective_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/fault"
)

// anyCall is a collective of some failure mode, called with root as its root.
type anyCall struct {
	name string
	run  func(ctx context.Context, w *pleach.World, root int) error
}

// without drops a call's result.
func without[Out any](_ Out, err error) error { return err }

// parts is one for each task.
func parts(w *pleach.World) [][]int {
	return slices.Repeat([][]int{{w.Rank(), 1}}, w.Size())
}

// everyCall is every collective in every failure mode that it has.
func everyCall() (calls []anyCall) {
	restore := collective.Restore(func(context.Context, int) ([]int, error) { return []int{1, 2}, nil })
	sum := collective.Sum[int]()
	in := []int{1, 2}
	for mode, options := range map[string][]collective.Option{"run-through": {restore}, "report": {collective.Report()}} {
		plain, some := options, options // of those that take nothing, or parts
		if mode == "run-through" {
			plain = nil
			some = []collective.Option{collective.Restore(func(context.Context, int) ([][]int, error) {
				return slices.Repeat([][]int{{0, 1}}, size), nil
			})}
		}
		for name, run := range map[string]func(ctx context.Context, w *pleach.World, root int) error{
			"Barrier": func(ctx context.Context, w *pleach.World, _ int) error {
				return collective.Barrier(ctx, w, plain...)
			},
			"Broadcast": func(ctx context.Context, w *pleach.World, root int) error {
				return without(collective.Broadcast(ctx, w, root, in, options...))
			},
			"Scatter": func(ctx context.Context, w *pleach.World, root int) error {
				return without(collective.Scatter(ctx, w, root, parts(w), some...))
			},
			"Gather": func(ctx context.Context, w *pleach.World, root int) error {
				return without(collective.Gather(ctx, w, root, in, options...))
			},
			"Reduce": func(ctx context.Context, w *pleach.World, root int) error {
				return without(collective.Reduce(ctx, w, root, in, sum, options...))
			},
			"Allreduce": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.Allreduce(ctx, w, in, sum, options...))
			},
			"Allgather": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.Allgather(ctx, w, in, options...))
			},
			"ReduceScatter": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.ReduceScatter(ctx, w, parts(w), sum, some...))
			},
			"Alltoall": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.Alltoall(ctx, w, parts(w), some...))
			},
			"Scan": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.Scan(ctx, w, in, sum, options...))
			},
			"Agree": func(ctx context.Context, w *pleach.World, _ int) error {
				return without(collective.Agree(ctx, w, 1, plain...))
			},
		} {
			calls = append(calls, anyCall{name + " " + mode, run})
		}
	}
	calls = append(calls,
		anyCall{"Reduce corrected", func(ctx context.Context, w *pleach.World, root int) error {
			return without(collective.Reduce(ctx, w, root, in, sum, collective.Corrected(1)))
		}},
		anyCall{"Allreduce corrected", func(ctx context.Context, w *pleach.World, _ int) error {
			return without(collective.Allreduce(ctx, w, in, sum, collective.Corrected(1)))
		}},
		anyCall{"Shrink", func(ctx context.Context, w *pleach.World, _ int) error {
			return without(w.Shrink(ctx))
		}},
	)
	slices.SortFunc(calls, func(a, b anyCall) int { return strings.Compare(a.name, b.name) })
	return calls
}

// size is how many processes those tests have.
const size = 4

// newJob makes the processes of a job, all in this one, on a network that can be
// made bad. All have met.
func newJob(ctx context.Context, bad *fault.Network) (worlds []*pleach.World, err error) {
	listeners, addresses := make([]net.Listener, size), make([]string, size)
	for r := range listeners {
		listeners[r], err = net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		addresses[r] = listeners[r].Addr().String()
	}
	for r := range size {
		inner, err := tcp.New(tcp.Config{
			Group: "job", Rank: protocol.Rank(r), Addresses: addresses, Listener: listeners[r],
			Open: true,
		})
		if err != nil {
			return worlds, err
		}
		w, err := pleach.NewWorld(ctx, pleach.Config{
			Group: "job", Addresses: addresses, Rank: r, Network: pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
		})
		if err != nil {
			return worlds, err
		}
		worlds = append(worlds, w)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return worlds, errors.Join(inAll(worlds, func(w *pleach.World) error { return collective.Barrier(ctx, w) })...)
}

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

// inJobs tries each call in a job of its own, all beside each other: most of the
// time they wait.
func inJobs(t *testing.T, try func(call anyCall, bad *fault.Network, worlds []*pleach.World) error) {
	t.Helper()
	var all sync.WaitGroup
	for i, call := range everyCall() {
		if (testing.Short() || testutil.RaceEnabled) && i%3 > 0 {
			continue
		}
		all.Go(func() {
			bad := fault.New(1, fault.Config{})
			worlds, err := newJob(t.Context(), bad)
			if err == nil {
				err = try(call, bad, worlds)
			}
			if err != nil {
				t.Errorf("%s: %v", call.name, err)
			}
			for _, w := range worlds {
				_ = w.Close()
			}
		})
	}
	all.Wait()
}

// Every collective, in every failure mode, names the process that has not made the call
// when the context ends, and the last call of that process.
func TestLateInEveryCall(t *testing.T) {
	// The absent process is asked for its last call, and all others have to come before. That takes longer on
	// a busy host.
	const first, longest = 3 * time.Second, 48 * time.Second
	inJobs(t, func(call anyCall, _ *fault.Network, worlds []*pleach.World) error {
		err := lateIn(t, call, worlds, first)
		for timeout := 4 * first; err != nil && timeout <= longest; timeout *= 4 {
			again, startErr := newJob(t.Context(), fault.New(1, fault.Config{}))
			if startErr != nil {
				return startErr
			}
			err = lateIn(t, call, again, timeout)
			for _, w := range again {
				_ = w.Close()
			}
		}
		return err
	})
}

// lateIn has all processes but one make a call that ends after a time, and says what is wrong with their errors.
func lateIn(t *testing.T, call anyCall, worlds []*pleach.World, timeout time.Duration) error {
	const absent = 1
	root := absent // what does not come from there, all wait for
	if strings.HasPrefix(call.name, "Gather") || strings.HasPrefix(call.name, "Reduce ") {
		root = 0
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	errs := inAll(worlds, func(w *pleach.World) error {
		if w.Rank() == absent {
			<-ctx.Done()
			return nil
		}
		return call.run(ctx, w, root)
	})
	late := false
	for r, err := range errs {
		var l *collective.TimeoutError
		var a *collective.AbortError
		switch {
		case err == nil: // it had nothing to wait for
		case errors.As(err, &l):
			late = true
			want := []collective.Missing{{Rank: absent, Calls: 1, Last: "Barrier"}}
			if !slices.Equal(l.Missing, want) || len(l.Waiting) == 0 {
				return fmt.Errorf("rank %d: absent are %v, waited for %v: %w", r, l.Missing, l.Waiting, err)
			}
		case !errors.As(err, &a) ||
			!strings.Contains(a.Reason, "not called yet by rank 1 (its call 0 was the last, Barrier)"):
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	if !late && !strings.HasSuffix(call.name, " corrected") { // those go on without it after 2 s
		return fmt.Errorf("no process timed out: %v", errs)
	}
	return nil
}

// Nothing hangs: every collective, in every failure mode, returns by its deadline
// under every fault that the fault transport has, with a result or with an error
// that says why. That no goroutine is left, TestMain sees.
func TestNothingHangs(t *testing.T) {
	for _, line := range []string{
		"drop 100%", "drop 30%", "delay 50ms", "delay 2s", "duplicate 50%", "reorder 50% within 5ms",
		"cut 0 3", "partition 0-1 | 2-3", "freeze 2", "kill 1", "reset 2",
	} {
		t.Run(line, func(t *testing.T) {
			script, err := fault.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			inJobs(t, func(call anyCall, bad *fault.Network, worlds []*pleach.World) error {
				const deadline, slack = 300 * time.Millisecond, 10 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				began := time.Now()
				errs := inAll(worlds, func(w *pleach.World) (err error) {
					for round := 0; err == nil && ctx.Err() == nil; round++ {
						if round == 2 && w.Rank() == 0 {
							_ = bad.Run(ctx, script)
						}
						err = call.run(ctx, w, round%size)
					}
					return err
				})
				if took := time.Since(began); took > deadline+slack {
					return fmt.Errorf("it took %v", took)
				}
				for r, err := range errs {
					if err != nil && !explained(err) {
						return fmt.Errorf("rank %d: %w", r, err)
					}
				}
				return nil
			})
		})
	}
}

// explained reports whether an error is one of those that a call may end with.
func explained(err error) bool {
	var late *collective.TimeoutError
	var abort *collective.AbortError
	var failed *collective.FailedError
	var tooMany *collective.TooManyDeadError
	return errors.As(err, &late) || errors.As(err, &abort) || errors.As(err, &failed) || errors.As(err, &tooMany) ||
		errors.Is(err, pleach.ErrEvicted) || errors.Is(err, pleach.ErrClosed)
}
