//go:build unix

package collective_test

// Corrected calls of real processes of which some are stopped: nothing says that they are
// silent, and the others go on without them.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const (
	silentProgram = "silent"
	silentSize    = 8
	silentRounds  = 180
	silentFrom    = 120 // the round in which processes are stopped
)

// runSilent makes corrected calls, and tells the result and the time of each.
func runSilent(ctx context.Context) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	pace := time.Tick(2 * time.Millisecond)
	for round := range silentRounds {
		began := time.Now()
		sum, err := collective.Allreduce(ctx, w, []uint64{1 << (3 * w.Rank())}, collective.Sum[uint64](),
			collective.Corrected(2))
		if err != nil {
			return err
		}
		fmt.Println("round", round, sum[0], time.Since(began).Nanoseconds())
		<-pace
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// silentRun is what the processes of a job have told.
type silentRun struct {
	sums  [silentSize][]uint64
	times [silentSize][]time.Duration
}

// runSilentJob stops the victims, and lets them go on when all others are done.
func runSilentJob(t *testing.T, victims []int) (run silentRun) {
	processes := startProgram(t, silentSize, silentProgram, 2*silentRounds)
	signal := func(s syscall.Signal) {
		for _, v := range victims {
			if err := processes[v].cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
		}
	}
	var all, live sync.WaitGroup
	live.Add(silentSize - len(victims))
	for r, p := range processes {
		all.Go(func() {
			last := ""
			for last = range p.lines {
				var round int
				var sum uint64
				var took time.Duration
				if _, err := fmt.Sscanf(last, "round %d %d %d", &round, &sum, &took); err != nil {
					continue
				}
				run.sums[r], run.times[r] = append(run.sums[r], sum), append(run.times[r], took)
				if r == 0 && round == silentFrom {
					signal(syscall.SIGSTOP)
				}
				if round == silentRounds-1 && !slices.Contains(victims, r) {
					live.Done()
				}
			}
			if last != "over" {
				t.Errorf("victims %v: rank %d ended with %q", victims, r, last)
			}
		})
	}
	live.Wait()
	signal(syscall.SIGCONT)
	all.Wait()
	return run
}

// check checks that all processes, those that were stopped too, have the same results, and
// returns how often a live process's input was missing.
func (run *silentRun) check(t *testing.T, victims []int) (missing int) {
	for round := range silentRounds {
		want := run.sums[0][round]
		for r := range silentSize {
			if got := run.sums[r][round]; got != want {
				t.Fatalf("victims %v, round %d: rank %d has %o, rank 0 %o", victims, round, r, got, want)
			}
			switch count := want >> (3 * r) & 7; {
			case count > 1:
				t.Fatalf("victims %v, round %d: %o: task %d is counted %d times", victims, round, want, r, count)
			case count == 0 && (round < silentFrom || !slices.Contains(victims, r)):
				missing++
			}
		}
	}
	return missing
}

// A stopped process costs the others one short wait, and later calls nothing. How long a call
// takes, and whether a live process looks stopped, depends on the load of the host, so it is judged
// with PLEACH_FULL alone, and the best of a few runs counts: TestCorrectedWithUpToFSilent has that in
// virtual time. That all have the same results holds always.
func TestSilentProcesses(t *testing.T) {
	for _, victims := range [][]int{{5}, {2}, {7}, {4, 5}, {3, 6}} {
		fast := false
		for range 10 {
			run := runSilentJob(t, victims)
			if t.Failed() {
				return
			}
			missing := run.check(t, victims)
			times := run.times[0]
			median := func(times []time.Duration) time.Duration { return slices.Sorted(slices.Values(times))[len(times)/2] }
			before, first, later := median(times[silentFrom/2:silentFrom]), slices.Max(times[silentFrom:]),
				median(times[silentFrom+10:])
			t.Logf("victims %v: %v before, at most %v at first, %v later; %d inputs of live processes are missing", victims,
				before, first, later, missing)
			limit := max(50*time.Millisecond, 10*slices.Max(times[silentFrom/2:silentFrom])) // what a loaded host takes
			judged := testutil.Full.On() && !testutil.RaceEnabled
			fast = !judged || first <= limit && later <= 3*before && missing < silentRounds/20
			if fast {
				break
			}
		}
		if !fast {
			t.Errorf("victims %v: each run was slow, or lacked inputs", victims)
		}
	}
}
