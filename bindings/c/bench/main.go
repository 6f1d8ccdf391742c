// Bench measures Allreduce of float64 from Go. bindings/python/bench.py compares it with other languages.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	bytes, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	in, out := make([]float64, bytes/8), make([]float64, bytes/8)
	var took []time.Duration
	for i := range rounds + rounds/4 {
		began := time.Now()
		if _, err := collective.Allreduce(ctx, w, in, collective.Sum[float64](), collective.Into(out)); err != nil {
			return err
		}
		if i >= rounds/4 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	if w.Rank() == 0 {
		fmt.Println("p50", took[len(took)/2].Seconds()*1e6)
	}
	return w.Finalize(ctx)
}
