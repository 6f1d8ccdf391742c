package collective_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// job runs a program as the processes of a job. A program of one's own calls
// pleach.NewWorld with an empty Config, and is started by a launcher.
func job(size int, program func(ctx context.Context, w *pleach.World)) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	addresses, err := testutil.FindAddresses(size)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for r := range size {
		w, err := pleach.NewWorld(ctx, pleach.Config{Group: "example", Addresses: addresses, Rank: r})
		if err != nil {
			panic(err)
		}
		all.Go(func() {
			program(ctx, w)
			_ = w.Finalize(ctx)
		})
	}
	all.Wait()
}

func ExampleAllreduce() {
	job(4, func(ctx context.Context, w *pleach.World) {
		mine := []float64{float64(w.Rank()), 1}
		sum, err := collective.Allreduce(ctx, w, mine, collective.Sum[float64](),
			collective.Restore(func(_ context.Context, task int) ([]float64, error) {
				return []float64{float64(task), 1}, nil
			}))
		if w.Rank() == 2 {
			fmt.Println(sum, err)
		}
	})
	// Output: [6 4] <nil>
}

func ExampleBarrier() {
	job(3, func(ctx context.Context, w *pleach.World) {
		err := collective.Barrier(ctx, w)
		if w.Rank() == 0 {
			fmt.Println("all are here:", err == nil)
		}
	})
	// Output: all are here: true
}

func ExampleBroadcast() {
	job(3, func(ctx context.Context, w *pleach.World) {
		var config []string
		if w.Rank() == 1 {
			config = []string{"speed=11"}
		}
		config, err := collective.Broadcast(ctx, w, 1, config)
		if w.Rank() == 0 {
			fmt.Println(config, err)
		}
	})
	// Output: [speed=11] <nil>
}

func ExampleReduce() {
	job(3, func(ctx context.Context, w *pleach.World) {
		highest, err := collective.Reduce(ctx, w, 0, []int{w.Rank() * 10}, collective.Max[int]())
		if w.Rank() == 0 {
			fmt.Println(highest, err)
		}
	})
	// Output: [20] <nil>
}

func ExampleGather() {
	job(3, func(ctx context.Context, w *pleach.World) {
		all, err := collective.Gather(ctx, w, 2, make([]int8, w.Rank()))
		if w.Rank() == 2 {
			fmt.Println(all, err)
		}
	})
	// Output: [[] [0] [0 0]] <nil>
}

func ExampleAllgather() {
	job(3, func(ctx context.Context, w *pleach.World) {
		names, err := collective.Allgather(ctx, w, []string{fmt.Sprint("process ", w.Rank())})
		if w.Rank() == 1 {
			fmt.Println(names, err)
		}
	})
	// Output: [[process 0] [process 1] [process 2]] <nil>
}

func ExampleScatter() {
	job(3, func(ctx context.Context, w *pleach.World) {
		var parts [][]int
		if w.Rank() == 0 {
			parts = [][]int{{1}, {2, 3}, {4, 5, 6}}
		}
		mine, err := collective.Scatter(ctx, w, 0, parts)
		if w.Rank() == 2 {
			fmt.Println(mine, err)
		}
	})
	// Output: [4 5 6] <nil>
}

func ExampleAlltoall() {
	job(3, func(ctx context.Context, w *pleach.World) {
		parts := make([][]string, w.Size())
		for to := range parts {
			parts[to] = []string{fmt.Sprintf("%d→%d", w.Rank(), to)}
		}
		got, err := collective.Alltoall(ctx, w, parts)
		if w.Rank() == 1 {
			fmt.Println(got, err)
		}
	})
	// Output: [[0→1] [1→1] [2→1]] <nil>
}

func ExampleReduceScatter() {
	job(3, func(ctx context.Context, w *pleach.World) {
		parts := [][]int{{1}, {10}, {100}}
		mine, err := collective.ReduceScatter(ctx, w, parts, collective.Sum[int]())
		if w.Rank() == 2 {
			fmt.Println(mine, err)
		}
	})
	// Output: [300] <nil>
}

func ExampleScan() {
	concatenate := collective.NewOperator("concatenate", func(left, right string) string { return left + right })
	job(3, func(ctx context.Context, w *pleach.World) {
		upToHere, err := collective.Scan(ctx, w, []string{string(rune('a' + w.Rank()))}, concatenate)
		if w.Rank() == 2 {
			fmt.Println(upToHere, err)
		}
	})
	// Output: [abc] <nil>
}

func ExampleAgree() {
	job(3, func(ctx context.Context, w *pleach.World) {
		const ready, haveDisk = 1, 2
		mine := uint64(ready | haveDisk)
		if w.Rank() == 1 {
			mine = ready
		}
		all, err := collective.Agree(ctx, w, mine)
		if w.Rank() == 0 {
			fmt.Println("ready:", all&ready != 0, "disk:", all&haveDisk != 0, err)
		}
	})
	// Output: ready: true disk: false <nil>
}

// A survivor takes over the task of a dead process: the result is the same.
func ExampleRestore() {
	input := func(task int) []int { return []int{task + 1} }
	job(4, func(ctx context.Context, w *pleach.World) {
		_ = collective.Barrier(ctx, w) // all have started
		if w.Rank() == 3 {
			_ = w.Close() // as if it had been killed
			return
		}
		sum, err := collective.Allreduce(ctx, w, input(w.Rank()), collective.Sum[int](),
			collective.Restore(func(_ context.Context, task int) ([]int, error) { return input(task), nil }))
		if w.Rank() == 0 {
			fmt.Println(sum, err)
		}
	})
	// Output: [10] <nil>
}

// State that a program updates in place: Restore may be asked for this call's input after
// the call has returned, so it uses a copy of the state that the call began with.
func ExampleRestore_stateUpdatedInPlace() {
	gradient := func(task int, weights []float64) []float64 {
		return []float64{float64(task) - weights[0], float64(task) - weights[1]}
	}
	job(4, func(ctx context.Context, w *pleach.World) {
		weights := []float64{10, 20}
		for range 3 {
			before := slices.Clone(weights) // never changed
			sum, err := collective.Allreduce(ctx, w, gradient(w.Rank(), weights), collective.Sum[float64](),
				collective.Restore(func(_ context.Context, task int) ([]float64, error) { return gradient(task, before), nil }))
			if err != nil {
				return
			}
			for i := range weights {
				weights[i] += sum[i] / 8
			}
		}
		if w.Rank() == 0 {
			fmt.Println(weights)
		}
	})
	// Output: [2.5625 3.8125]
}

// Each task's result is written by its owner, with a fencing token. The storage refuses a
// write with a lower token than it has seen: that of a process that was removed from the job
// and does not know it.
func ExampleComm_FencingToken() {
	var storage struct {
		sync.Mutex
		tokens map[int]uint64 // by task: the highest
	}
	storage.tokens = make(map[int]uint64)
	write := func(task int, token uint64) bool {
		storage.Lock()
		defer storage.Unlock()
		if token < storage.tokens[task] {
			return false
		}
		storage.tokens[task] = token // and the result, in the same transaction
		return true
	}
	job(3, func(ctx context.Context, w *pleach.World) {
		if err := collective.Barrier(ctx, w); err != nil {
			return
		}
		old, _ := w.FencingToken(w.Rank())
		if w.Rank() == 2 {
			_ = w.Close() // the others take task 2 over
			return
		}
		if err := collective.Barrier(ctx, w); err != nil {
			return
		}
		if token, owned := w.FencingToken(2); owned {
			fmt.Println("the new owner writes:", write(2, token))
			fmt.Println("the old owner writes:", write(2, old))
		}
	})
	// Output:
	// the new owner writes: true
	// the old owner writes: false
}

// A program that handles failures itself: a process that meets one gets the others out of
// their calls, and all continue in a smaller communicator.
func ExampleComm_Shrink() {
	job(4, func(ctx context.Context, w *pleach.World) {
		_ = collective.Barrier(ctx, w) // all have started
		if w.Rank() == 1 {
			_ = w.Close() // as if it had been killed
			return
		}
		_, err := collective.Allreduce(ctx, w, []int{1}, collective.Sum[int](), collective.Report())
		var failed *collective.FailedError
		if errors.As(err, &failed) {
			w.Revoke()
		}
		smaller, err := w.Shrink(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		sum, err := collective.Allreduce(ctx, smaller, []int{1}, collective.Sum[int](), collective.Report())
		if w.Rank() == 3 {
			fmt.Println("rank", smaller.Rank(), "of", smaller.Size(), "was", smaller.WorldRank(smaller.Rank()))
			fmt.Println(sum, err)
		}
	})
	// Output:
	// rank 2 of 3 was 3
	// [3] <nil>
}

// One process gives up, and no other waits for it any more.
func ExampleComm_Revoke() {
	job(3, func(ctx context.Context, w *pleach.World) {
		if w.Rank() == 2 {
			w.Revoke()
			return
		}
		err := collective.Barrier(ctx, w)
		var revoked *collective.RevokedError
		if errors.As(err, &revoked) && w.Rank() == 0 {
			fmt.Println("revoked by rank", revoked.By)
		}
	})
	// Output: revoked by rank 2
}

// Agree reports failures until all processes have acknowledged them.
func ExampleComm_AckFailed() {
	job(3, func(ctx context.Context, w *pleach.World) {
		_ = collective.Barrier(ctx, w) // all have started
		if w.Rank() == 2 {
			_ = w.Close() // as if it had been killed
			return
		}
		for len(w.Failed()) == 0 {
			time.Sleep(time.Millisecond)
		}
		_, before := collective.Agree(ctx, w, 1, collective.Report())
		acknowledged := w.AckFailed()
		value, after := collective.Agree(ctx, w, 1, collective.Report())
		var failed *collective.FailedError
		if errors.As(before, &failed) && w.Rank() == 0 {
			fmt.Println(failed.Ranks, acknowledged, value, after)
		}
	})
	// Output: [2] [2] 1 <nil>
}

// A call that runs in the background: its number is reserved in order, and other calls are
// made meanwhile.
func ExampleComm_Reserve() {
	job(3, func(ctx context.Context, w *pleach.World) {
		var sum []int
		var sumErr error
		var calls sync.WaitGroup
		later := w.Reserve()
		calls.Go(func() { sum, sumErr = collective.Allreduce(ctx, later, []int{w.Rank()}, collective.Sum[int]()) })
		highest, err := collective.Allreduce(ctx, w, []int{w.Rank()}, collective.Max[int]())
		calls.Wait()
		if w.Rank() == 0 {
			fmt.Println(sum, sumErr, highest, err)
		}
	})
	// Output: [3] <nil> [2] <nil>
}

// results are those of tasks that were taken over. A Restore waits for them.
type results[T any] struct {
	mu     sync.Mutex
	byTask map[int]chan T
}

func (r *results[T]) of(task int) chan T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byTask == nil {
		r.byTask = make(map[int]chan T)
	}
	if r.byTask[task] == nil {
		r.byTask[task] = make(chan T, 1)
	}
	return r.byTask[task]
}

// put notes a result, and get waits for it.
func (r *results[T]) put(task int, result T) { r.of(task) <- result }

func (r *results[T]) get(ctx context.Context, task int) (result T, err error) {
	select {
	case result = <-r.of(task):
		return result, nil
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// Every process receives some words, and sorts them. What a process had received that dies
// then is received again by the new owner of its task, and sorted there.
func ExampleComm_Hold() {
	words := func(task int) [][]byte {
		return [][]byte{{'k', byte('a' + task)}, {'x', byte('d' + task)}, {'p', byte('g' + task)}}
	}
	sorted := func(received [][]byte) []byte {
		all := slices.Concat(received...)
		slices.Sort(all)
		return all
	}
	job(3, func(ctx context.Context, w *pleach.World) {
		defer w.Hold()()
		var received results[[][]byte]
		mine, err := collective.Alltoall(ctx, w, words(w.Rank()), collective.Takeover(received.put),
			collective.Restore(func(_ context.Context, task int) ([][]byte, error) { return words(task), nil }))
		if err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond) // the work
		if w.Rank() == 1 {
			_ = w.Abort() // it dies
			return
		}
		all, err := collective.Allgather(ctx, w, sorted(mine),
			collective.Restore(func(ctx context.Context, task int) ([]byte, error) {
				got, err := received.get(ctx, task)
				return sorted(got), err
			}))
		if w.Rank() == 0 {
			fmt.Printf("%s %v\n", all, err)
		}
	})
	// Output: [abckkk defxxx ghippp] <nil>
}

// Each task sends to the next one on a ring, and learns which sends to it.
func ExampleExchange() {
	job(4, func(ctx context.Context, w *pleach.World) {
		part := func(task int) map[int][]int { return map[int][]int{(task + 1) % 4: {10 * task}} }
		got, err := collective.Exchange(ctx, w, part(w.Rank()),
			collective.Restore(func(_ context.Context, task int) (map[int][]int, error) { return part(task), nil }))
		if w.Rank() == 3 {
			fmt.Println(got, err)
		}
	})
	// Output: map[2:[20]] <nil>
}

// The rows of a grid of 2 × 3 add up their ranks.
func ExampleComm_Split() {
	job(6, func(ctx context.Context, w *pleach.World) {
		row, err := w.Split(ctx, func(task int) int { return task / 3 })
		if err != nil {
			return
		}
		sum, err := collective.Allreduce(ctx, row, []int{w.Rank()}, collective.Sum[int](),
			collective.Restore(func(_ context.Context, task int) ([]int, error) { return []int{row.WorldRank(task)}, nil }))
		if w.Rank() == 4 {
			fmt.Printf("rank %d of %d: %v %v\n", row.Rank(), row.Size(), sum, err)
		}
	})
	// Output: rank 1 of 3: [12] <nil>
}

// Which algorithms an Allreduce uses in a job of 64 processes on 4 hosts, of which a message to
// another host takes 40 µs and 1 ns for each byte.
func ExampleNetwork_Algorithms() {
	network := collective.Network{
		Between: collective.Link{Latency: 20 * time.Microsecond, Overhead: 10 * time.Microsecond, Bandwidth: 1e9},
	}
	for _, rule := range network.Algorithms(64, 4) {
		if rule.Collective == "Allreduce" {
			fmt.Println(rule)
		}
	}
	// Output:
	// Allreduce      from      0 bytes, 1 tasks: two levels: inside hosts, and between one task of each
	// Allreduce      from 131072 bytes, 1 tasks: recursive halving and doubling (Rabenseifner)
}
