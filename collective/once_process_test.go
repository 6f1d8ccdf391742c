package collective_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const onceProgram = "once "

// allowed ends the name of the file that allows a writer to write.
const allowed = ".allowed"

// runOnce writes the result of a job to a file. A writer that the test does not kill waits
// until the test allows it to write.
func runOnce(ctx context.Context, file string) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	one := func(context.Context, int) ([]float64, error) { return []float64{1}, nil }
	sum, err := collective.Allreduce(ctx, w, []float64{1}, collective.Sum[float64](), collective.Restore(one))
	if err != nil {
		return err
	}
	err = collective.Once(ctx, w, func(context.Context) error {
		fmt.Println("writing")
		testutil.Within(time.Hour, func() bool { // the test kills the process before
			_, err := os.Stat(file + allowed)
			return err == nil
		})
		return os.WriteFile(file, fmt.Append(nil, sum), 0o644)
	})
	if err != nil {
		return err
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// Processes that are killed while they write the result: a survivor writes it, in 20 of 20
// jobs.
func TestResultOutlivesWriters(t *testing.T) {
	for job := range 20 {
		file := filepath.Join(t.TempDir(), "result")
		processes := startProgram(t, 4, onceProgram+file, 10)
		victims := make(chan struct{}, 1+job%3) // one to three of four
		for range cap(victims) {
			victims <- struct{}{}
		}
		var watching sync.WaitGroup
		for r, p := range processes {
			watching.Go(func() {
				last, killed := "", false
				for last = range p.lines {
					if last == "writing" {
						select {
						case <-victims:
							killed = true
							_ = p.cmd.Process.Kill()
						default:
							if err := os.WriteFile(file+allowed, nil, 0o600); err != nil {
								t.Error(err)
							}
						}
					}
				}
				if !killed && last != "over" {
					t.Errorf("job %d: rank %d ended with %q", job, r, last)
				}
			})
		}
		watching.Wait()
		if result, err := os.ReadFile(file); err != nil || string(result) != "[4]" {
			t.Fatalf("job %d: the result is %q: %v", job, result, err)
		}
		if len(victims) > 0 {
			t.Errorf("job %d: %d processes were not killed", job, len(victims))
		}
	}
}
