package samplesort_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/samplesort"
)

// sortStream sorts lines that rank 0 reads, by a key, in reverse and without duplicates. One
// rank dies in a phase, or rank 0 while it reads if the phase is empty.
func sortStream(t *testing.T, dies int, phase string) (output []byte, errs [members]error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var lines bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&lines, "%d key-%d\n", i, i*7919%311)
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for rank, w := range newWorlds(t, members, pleach.Job{}) {
		all.Go(func() {
			defer w.Abort()
			var input io.Reader = bytes.NewReader(lines.Bytes())
			if rank == dies && phase == "" {
				input = deadly{}
			}
			_, errs[rank] = samplesort.Run(ctx, w, samplesort.Job{
				Input: samplesort.Stream(input), Format: samplesort.Lines, Output: dir,
				Order: samplesort.Order{Keys: []samplesort.Key{{Field: 2}}, Reverse: true, Unique: true},
				Phase: func(name string) {
					if rank == dies && name == phase {
						runtime.Goexit() // Without a word: the deferred Abort is a crash.
					}
				},
			})
			if errs[rank] == nil {
				errs[rank] = w.Finalize(ctx)
			}
		})
	}
	all.Wait()
	if phase == "" && dies >= 0 {
		return nil, errs
	}
	if c, err := samplesort.Check(ctx, dir); err != nil || c.Records != 311 || c.Duplicates != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	return readOutput(t, dir), errs
}

// deadly ends its reader.
type deadly struct{}

func (deadly) Read([]byte) (int, error) {
	runtime.Goexit()
	return 0, nil
}

// What rank 0 has read survives deaths, that of rank 0 among them.
func TestStream(t *testing.T) {
	want, _ := sortStream(t, -1, "")
	for rank, phase := range []string{"sample", "exchange", "sort", "write"} {
		got, errs := sortStream(t, rank, phase)
		if err := errors.Join(errs[:]...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("rank %d died in %s: %v, or the output differs", rank, phase, err)
		}
	}
}

// What rank 0 has not yet read is lost with it, and the others say so.
func TestLostStream(t *testing.T) {
	_, errs := sortStream(t, 0, "")
	for rank, err := range errs[1:] {
		// The process that asks for the input first has the error, and the others its text.
		if err == nil || !strings.Contains(err.Error(), samplesort.ErrStream.Error()) {
			t.Errorf("rank %d: %v", rank+1, err)
		}
	}
}
