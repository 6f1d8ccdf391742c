package collective_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

const mismatchProgram = "mismatch "

// runMismatch makes a call of which rank 2 makes another one, and ends at the first error.
func runMismatch(ctx context.Context, odd string) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	x := []float64{1, 2, 3}
	if _, err := collective.Allreduce(ctx, w, x, collective.Sum[float64]()); err != nil {
		return err
	}
	op := collective.Sum[float64]()
	switch isOdd := w.Rank() == 2; {
	case odd == "root":
		_, err = collective.Broadcast(ctx, w, w.Rank()%2, x)
	case isOdd && odd == "barrier":
		err = collective.Barrier(ctx, w)
	case isOdd && odd == "missing":
	case isOdd && odd == "type":
		_, err = collective.Allreduce(ctx, w, []int32{1, 2, 3}, collective.Sum[int32]())
	case isOdd && odd == "operator":
		op = collective.Max[float64]()
		fallthrough
	default:
		_, err = collective.Allreduce(ctx, w, x, op)
	}
	if err != nil {
		return err
	}
	return w.Finalize(ctx)
}

// Every process names both calls, although each exits at its error, in 20 of 20 jobs of each
// kind.
func TestMismatchIsNamedByAll(t *testing.T) {
	for odd, names := range map[string][2]string{
		"barrier":  {"Barrier", "Allreduce[float64]"},
		"type":     {"Allreduce[int32]", "Allreduce[float64]"},
		"operator": {"max of float64", "sum of float64"},
		"missing":  {"Finalize", "Allreduce[float64]"},
		"root":     {"root 0", "root 1"},
	} {
		for job := range 20 {
			var watching sync.WaitGroup
			for r, p := range startProgram(t, 4, mismatchProgram+odd, 10) {
				watching.Go(func() {
					last := ""
					for last = range p.lines {
					}
					if !strings.Contains(last, "does not match") || !strings.Contains(last, names[0]) ||
						!strings.Contains(last, names[1]) {
						t.Errorf("%s, job %d: rank %d ended with %s", odd, job, r, fmt.Sprintf("%q", last))
					}
				})
			}
			watching.Wait()
			if t.Failed() {
				return
			}
		}
	}
}
