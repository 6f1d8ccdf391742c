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

// The output is the same bytes whichever process dies, and in whichever phase.
func TestRunWithDeaths(t *testing.T) {
	want := runJob(t, -1, "")
	for _, phase := range []string{"sample", "exchange", "sort", "write", "done"} {
		for _, rank := range []int{0, 2} {
			if phase == "done" && rank != 0 {
				continue // Only the owner of task 0 reports.
			}
			t.Run(fmt.Sprintf("%s/%d", phase, rank), func(t *testing.T) {
				if got := runJob(t, rank, phase); !bytes.Equal(got, want) {
					t.Error("the output differs from that without a death")
				}
			})
		}
	}
}

// runJob sorts with members of which one dies when it begins a phase. It returns the
// output.
func runJob(t *testing.T, dies int, phase string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	dir := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	var reported []samplesort.Result
	for rank, w := range newWorlds(t, members) {
		all.Go(func() {
			defer w.Abort()
			begin := func(name string) {
				if rank == dies && name == phase {
					runtime.Goexit() // Without a word: the deferred Abort is a crash.
				}
			}
			result, err := samplesort.Run(ctx, w, samplesort.Job{
				Input: samplesort.Generate(records), Output: dir, Phase: begin,
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
func newWorlds(t *testing.T, size int) []*pleach.World {
	t.Helper()
	network, addresses := mem.NewNetwork(size, mem.Config{}), make([]string, size)
	for r := range addresses {
		addresses[r] = fmt.Sprintf("127.0.0.1:%d", r+1)
	}
	worlds := make([]*pleach.World, size)
	for r := range worlds {
		var err error
		if worlds[r], err = pleach.NewWorld(t.Context(), pleach.Config{Addresses: addresses, Rank: r, Transport: network.Member(protocol.Rank(r))}); err != nil {
			t.Fatal(err)
		}
	}
	return worlds
}
