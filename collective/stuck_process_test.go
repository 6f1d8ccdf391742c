//go:build unix

package collective_test

// Jobs with a process that is alive and does not get on: the others have it removed.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const (
	stuckProgram = "stuck "
	stuckSize    = 8
	stuckTimeout = 500 * time.Millisecond
	startsLate   = "starts late"
	lateTimeout  = 4 * time.Second // once it has started, a busy host may delay it for some of that
)

// runStuck makes calls in which rank 3 is stuck for a while.
func runStuck(ctx context.Context, how string) error {
	if how == startsLate && os.Getenv("PLEACH_RANK") == "3" {
		time.Sleep(lateTimeout * 3 / 2)
	}
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	input := func(task, round int) []float64 { return []float64{1 / float64(1+task+round)} }
	for round := range 20 {
		if round == 10 && w.Rank() == 3 {
			fmt.Println("stuck")
			stick(how)
		}
		sum, err := collective.Allreduce(ctx, w, input(w.Rank(), round), collective.Sum[float64](),
			collective.Restore(func(_ context.Context, task int) ([]float64, error) { return input(task, round), nil }))
		if errors.Is(err, pleach.ErrEvicted) {
			fmt.Println("evicted")
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println("round", round, sum[0])
	}
	if how == startsLate && w.Group().Size() != stuckSize {
		fmt.Println("of", w.Group().Size())
		return nil
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// stick does not get on for some time.
func stick(how string) {
	const long = 6 * stuckTimeout
	switch how {
	case "sleeps":
		time.Sleep(long)
	case "spins":
		for until := time.Now().Add(long); time.Now().Before(until); {
		}
	case "stopped":
		last := time.Now()
		testutil.Within(time.Minute, func() bool { // until the test has stopped it, and continued it
			gap := time.Since(last)
			last = time.Now()
			return gap > stuckTimeout
		})
	}
}

// The others finish with the result of a run without failures, and the process that was stuck
// learns that it was removed.
func TestStuckProcesses(t *testing.T) {
	t.Setenv("PLEACH_PROGRESS_TIMEOUT", stuckTimeout.String())
	jobs := 2
	if testutil.Full.On() {
		jobs = 20
	}
	for _, how := range []string{"sleeps", "spins", "stopped"} {
		for range jobs {
			runStuckJob(t, how, "evicted")
		}
	}
}

// Without the setting no process is removed.
func TestStuckProcessesAreWaitedFor(t *testing.T) {
	runStuckJob(t, "sleeps", "over")
}

// A process that has not started yet is not stuck: Config.Detection.StartTimeout is how long it may take.
func TestLateStartersAreNotStuck(t *testing.T) {
	t.Setenv("PLEACH_PROGRESS_TIMEOUT", lateTimeout.String())
	runStuckJob(t, startsLate, "over")
}

// runStuckJob runs a job, and expects that its rank 3 ends so, and all others with the same
// result.
func runStuckJob(t *testing.T, how, wants string) {
	t.Helper()
	var mu sync.Mutex
	sums := make(map[string]string) // by round
	var watching, live sync.WaitGroup
	live.Add(stuckSize - 1)
	for r, p := range startProgram(t, stuckSize, stuckProgram+how, 40) {
		watching.Go(func() {
			last := ""
			for last = range p.lines {
				round, sum, ok := strings.Cut(strings.TrimPrefix(last, "round "), " ")
				if last == "stuck" && how == "stopped" {
					_ = p.cmd.Process.Signal(syscall.SIGSTOP)
					watching.Go(func() { live.Wait(); _ = p.cmd.Process.Signal(syscall.SIGCONT) })
				}
				if !ok {
					continue
				}
				mu.Lock()
				if sums[round] == "" {
					sums[round] = sum
				}
				if sums[round] != sum {
					t.Errorf("%s: rank %d has %s in round %s, another one %s", how, r, sum, round, sums[round])
				}
				mu.Unlock()
			}
			if r != 3 {
				live.Done()
				if last != "over" {
					t.Errorf("%s: rank %d ended with %q", how, r, last)
				}
			} else if last != wants {
				t.Errorf("%s: rank 3 ended with %q, want %q", how, last, wants)
			}
		})
	}
	watching.Wait()
	if len(sums) != 20 {
		t.Errorf("%s: results of %d rounds", how, len(sums))
	}
}
