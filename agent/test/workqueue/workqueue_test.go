//go:build unix

package workqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/workqueue"
)

const items = 10_000

func TestMain(m *testing.M) {
	if os.Getenv("PLEACH_LISTEN_FD") == "" {
		os.Exit(m.Run())
	}
	if err := sweep(context.Background()); err != nil && !errors.Is(err, pleach.ErrJobEnded) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sweep squares numbers, with some work for each.
func sweep(ctx context.Context) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	results, err := workqueue.Run(ctx, w, items, workqueue.Options{Batch: 5},
		func(_ context.Context, item int) (int, error) {
			time.Sleep(time.Millisecond)
			return item * item, nil
		})
	if err != nil {
		return err
	}
	err = collective.Once(ctx, w, func(context.Context) error {
		for item, result := range results {
			if result != item*item {
				return fmt.Errorf("item %d: %d", item, result)
			}
		}
		_, err := fmt.Printf("%d results\n", len(results))
		return err
	})
	if err != nil {
		return err
	}
	return w.Finalize(ctx)
}

// A worker is killed every 200 ms, and started anew: every item has its result, once.
func TestEveryItemHasOneResult(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("its processes are slow to start with the race detector: .ci/run big runs it")
	}
	const workers = 8
	var kills []string
	for i := range 60 { // rank 0 stays: on a busy host all others may be dead at a time
		kills = append(kills, fmt.Sprintf("%d@%dms", 1+i*3%(workers-1), 200*(i+1)))
	}
	faults, err := launch.Schedule(workers, kills, nil)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	report, err := launch.Run(launch.Job{
		Size: workers, Program: self, Args: []string{self}, Faults: faults, Respawn: true, Grace: time.Second,
		Output: &launch.Output{Stdout: launch.Stream{Writer: &out}, Stderr: launch.Stream{Writer: &complaint}},
	})
	if err != nil {
		t.Fatal(err)
	}
	injected := len(kills) - len(report.Missed)
	if o, failed := report.FirstFailure(); failed || injected < 5 {
		t.Errorf("%+v, %d kills: %s", o, injected, complaint.String())
	}
	if want := fmt.Sprintf("%d results\n", items); !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q: %s", out.String(), want, complaint.String())
	}
	t.Logf("%d kills", injected)
}
