package sort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/samplesort"
)

// Serve is one process of a job: it sorts as pleach sort does, and prints each phase to
// standard error.
func Serve(ctx context.Context, output, input string) error {
	w, err := pleach.NewWorld(ctx, pleach.Config{Job: pleach.Job{LogBytes: math.MaxInt}})
	if err != nil {
		return err
	}
	_, err = samplesort.Run(ctx, w, samplesort.Job{
		Input: samplesort.Files(input), Output: output,
		Phase: func(name string) { fmt.Fprintln(os.Stderr, "phase", name) },
	})
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Finalize(ctx)
}
