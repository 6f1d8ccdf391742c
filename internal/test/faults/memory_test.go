package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// memoryProgram makes one Allreduce of a long vector, and prints how much memory the
// process has used at most, beyond what it had used before it made the vector.
func memoryProgram(ctx context.Context, w *pleach.World) error {
	before, err := peakMemory()
	if err != nil {
		return err
	}
	in := make([]float64, number("PLEACH_FAULTS_BYTES", 64<<20)/8)
	for i := range in {
		in[i] = float64(i % 1000)
	}
	if err := collective.Barrier(ctx, w); err != nil {
		return err
	}
	began := time.Now()
	for range number("PLEACH_FAULTS_CALLS", 1) {
		sum, err := collective.Allreduce(ctx, w, in, collective.Sum[float64]())
		if err != nil {
			return err
		}
		for i, got := range sum {
			if want := float64(w.Size()) * in[i]; got != want {
				return fmt.Errorf("element %d is %v, want %v", i, got, want)
			}
		}
	}
	took := time.Since(began)
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	after, err := peakMemory()
	fmt.Println("peak", after-before)
	fmt.Println("took", took.Milliseconds())
	return err
}

// peakMemory is the largest resident size of this process so far, in bytes.
func peakMemory() (int, error) { return peakMemoryOf("self") }

// peakMemoryOf returns that of a process, by its number.
func peakMemoryOf(process string) (int, error) {
	b, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmHWM")
}

// Case 30: an Allreduce of a long vector. A process uses at most three times the vector's
// memory: the input, the result, and as much again for everything between.
func TestCase30AllreduceOfALongVector(t *testing.T) {
	if _, err := peakMemory(); err != nil {
		t.Skip(err)
	}
	if testutil.RaceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	sizes := []int{64 << 20}
	if testutil.Full.On() {
		sizes = append(sizes, 256<<20)
	}
	for _, size := range sizes {
		t.Run(strconv.Itoa(size>>20)+"MiB", func(t *testing.T) {
			addresses := testutil.FreeAddresses(t, 4)
			job := startJob(t, "memory", addresses, onThisHost, fmt.Sprintf("PLEACH_FAULTS_BYTES=%d", size))
			waitJob(job)
			ratios, took := make([]float64, len(job)), make([]string, len(job))
			for r, p := range job {
				if p.err != nil || len(p.lines("peak")) != 1 {
					t.Fatalf("rank %d: %v\n%s", r, p.err, p.out.String())
				}
				peak, _ := strconv.Atoi(p.lines("peak")[0])
				ratios[r], took[r] = float64(peak)/float64(size), p.lines("took")[0]
				if ratios[r] > 3 {
					t.Errorf("rank %d uses %.2f times the vector", r, ratios[r])
				}
			}
			figures(t, map[string]any{"case": 30, "bytes": size, "of_vector": ratios, "took_ms": took})
		})
	}
}
