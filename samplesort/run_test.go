package samplesort_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/samplesort"
	"github.com/pleach-go/pleach/transport/mem"
)

const (
	members = 4
	records = 10_000
)

// The output is the same bytes whichever process dies, and in whichever phase: if what a
// task has received is held, and if it is more than may be.
func TestRunWithDeaths(t *testing.T) {
	want := (&trial{dies: -1}).run(t)
	for _, held := range []bool{true, false} {
		for _, phase := range []string{"sample", "exchange", "sort", "write", "done"} {
			for _, rank := range []int{0, 2} {
				if phase == "done" && rank != 0 {
					continue // Only the owner of task 0 reports.
				}
				t.Run(fmt.Sprintf("held=%v/%s/%d", held, phase, rank), func(t *testing.T) {
					c := trial{dies: rank, phase: phase}
					if !held {
						c.job.LogBytes = records * 100 / 2
					}
					if got := c.run(t); !bytes.Equal(got, want) {
						t.Error("the output differs from that without a death")
					}
					if held {
						c.checkReads(t)
					}
				})
			}
		}
	}
}

// lateDeath is how long a member is in a phase when it dies: longer than a call may take
// before the engine asks for progress, and trims what is not held.
const lateDeath = 60 * time.Millisecond

// trial is a job of which one member dies when it begins a phase.
type trial struct {
	dies  int // rank
	phase string
	job   pleach.Job
	input countedInput
}

// countedInput counts how often the share of each task is read.
type countedInput struct {
	samplesort.Input
	reads [members]atomic.Int32
}

func (i *countedInput) Read(ctx context.Context, f samplesort.Format, task, tasks int) ([]byte, error) {
	i.reads[task].Add(1)
	return i.Input.Read(ctx, f, task, tasks)
}

// checkReads checks that only the share of the dead process's task was read again.
func (c *trial) checkReads(t *testing.T) {
	t.Helper()
	for task := range c.input.reads {
		if n := c.input.reads[task].Load(); n > 1 && task != c.dies {
			t.Errorf("the share of task %d was read %d times", task, n)
		}
	}
}

// run sorts, and returns the output.
func (c *trial) run(t *testing.T) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c.input.Input = samplesort.Generate(records)
	dir := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	var reported []samplesort.Result
	for rank, w := range newWorlds(t, members, c.job) {
		all.Go(func() {
			defer w.Abort()
			begin := func(name string) {
				if rank == c.dies && name == c.phase {
					time.Sleep(lateDeath)
					runtime.Goexit() // Without a word: the deferred Abort is a crash.
				}
			}
			result, err := samplesort.Run(ctx, w, samplesort.Job{
				Input: &c.input, Output: dir, Phase: begin,
				Done: func(r samplesort.Result) {
					begin("done")
					mu.Lock()
					defer mu.Unlock()
					reported = append(reported, r)
				},
			})
			if err != nil || !result.Equal() || result.Output.Records != records {
				t.Errorf("rank %d: %+v, %v", rank, result, err)
			}
			if err := w.Finalize(ctx); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
	if len(reported) != 1 || !reported[0].Equal() {
		t.Errorf("the result was reported as %+v, want once", reported)
	}
	if _, err := samplesort.Check(ctx, dir); err != nil {
		t.Error(err)
	}
	return readOutput(t, dir)
}

// readOutput returns all files of an output, with the marker, by name.
func readOutput(t *testing.T, dir string) []byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, []byte(e.Name()+"\n"), b)
	}
	return slices.Concat(files...)
}

// newWorlds returns the worlds of a job whose processes are goroutines.
func newWorlds(t *testing.T, size int, job pleach.Job) []*pleach.World {
	t.Helper()
	network, addresses := mem.NewNetwork(size, mem.Config{}), make([]string, size)
	for r := range addresses {
		addresses[r] = fmt.Sprintf("127.0.0.1:%d", r+1)
	}
	worlds := make([]*pleach.World, size)
	for r := range worlds {
		var err error
		worlds[r], err = pleach.NewWorld(t.Context(), pleach.Config{
			Addresses: addresses, Rank: r,
			Network: pleach.Network{Transport: network.Member(protocol.Rank(r))}, Job: job,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return worlds
}
