package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// weightsProgram trains: each round sums the tasks' gradients, and updates the weights in
// place. With PLEACH_FAULTS_RESTORE=closure, Restore computes a gradient from the weights
// as they are when it is asked, which may be those of a later round. Otherwise it uses a
// copy of those of the round. The process of rank 2 dies at a random moment.
func weightsProgram(ctx context.Context, w *pleach.World) error {
	if w.Rank() == 2 {
		time.AfterFunc(time.Duration(50+rand.IntN(100))*time.Millisecond,
			func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	weights := make([]float64, 2000)
	rounds, wrong := number("PLEACH_FAULTS_ROUNDS", 1500), os.Getenv("PLEACH_FAULTS_RESTORE") == "closure"
	for round := range rounds {
		before := weights
		if !wrong {
			before = append([]float64(nil), weights...)
		}
		sum, err := collective.Allreduce(ctx, w, gradient(w.Rank(), round, weights), collective.Sum[float64](),
			collective.Restore(func(_ context.Context, task int) ([]float64, error) {
				return gradient(task, round, before),
					nil
			}))
		if err != nil {
			return err
		}
		for i := range weights {
			weights[i] += sum[i] / 1000
		}
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, weights)
	fmt.Println("weights", h.Sum64())
	return nil
}

// gradient is a task's in a round.
func gradient(task, round int, weights []float64) []float64 {
	g := make([]float64, len(weights))
	for i := range g {
		g[i] = float64((task+1)*(round%7+i%5)) - weights[i]
	}
	return g
}

// Case 17: Restore reads weights that are updated in place. The replicas never diverge
// silently: all that finish have the same weights, or the processes are told that a task
// was restored wrongly. With a Restore that returns what the task had, all finish, and
// always with the same weights.
func TestCase17RestoreOfStateUpdatedInPlace(t *testing.T) {
	for _, restore := range []string{"copy", "closure"} {
		t.Run(restore, func(t *testing.T) {
			runs, found, silent, results := 6, 0, 0, map[string]bool{}
			for range runs {
				addresses := testutil.FreeAddresses(t, 4)
				job := startJob(t, "weights", addresses, onThisHost, "PLEACH_FAULTS_RESTORE="+restore)
				waitJob(job)
				diverged, ends := false, map[string]bool{}
				for r, p := range job {
					if r == 2 {
						continue
					}
					for _, line := range p.lines("weights") {
						ends[line], results[line] = true, true
					}
					diverged = diverged || strings.Contains(p.out.String(), "its Restore did not return")
					if restore == "copy" && p.err != nil {
						t.Errorf("rank %d: %v\n%s", r, p.err, p.out.String())
					}
				}
				if diverged {
					found++
				} else if len(ends) > 1 {
					silent++
				}
			}
			figures(t, map[string]any{
				"case": 17, "restore": restore, "runs": runs, "found": found, "silent": silent,
				"results": len(results),
			})
			if silent > 0 || restore == "copy" && (found > 0 || len(results) != 1) {
				t.Errorf("%d runs diverged silently, %d were found to; %d different results", silent, found, len(results))
			}
		})
	}
}
