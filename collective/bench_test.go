package collective_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// Four processes in one, over TCP on loopback: run-through against report, which
// keeps nothing.
func BenchmarkCollectives(b *testing.B) {
	for _, bytes := range []int{8, 64 << 10, 4 << 20} {
		in := make([]int64, bytes/8)
		parts := [][]int64{in[:len(in)/4], in[:len(in)/4], in[:len(in)/4], in[:len(in)/4]}
		for name, call := range map[string]func(ctx context.Context, w *pleach.World, options ...collective.Option) error{
			"barrier": func(ctx context.Context, w *pleach.World, options ...collective.Option) error {
				return collective.Barrier(ctx, w, options...)
			},
			"broadcast": func(ctx context.Context, w *pleach.World, options ...collective.Option) error {
				_, err := collective.Broadcast(ctx, w, 0, in, options...)
				return err
			},
			"reduce": func(ctx context.Context, w *pleach.World, options ...collective.Option) error {
				_, err := collective.Reduce(ctx, w, 0, in, collective.Sum[int64](), options...)
				return err
			},
			"allreduce": func(ctx context.Context, w *pleach.World, options ...collective.Option) error {
				_, err := collective.Allreduce(ctx, w, in, collective.Sum[int64](), options...)
				return err
			},
			"alltoall": func(ctx context.Context, w *pleach.World, options ...collective.Option) error {
				_, err := collective.Alltoall(ctx, w, parts, options...)
				return err
			},
		} {
			for mode, options := range map[string][]collective.Option{"run-through": nil, "report": {collective.Report()}} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, bytes, mode), func(b *testing.B) {
					job(4, func(ctx context.Context, w *pleach.World) {
						if err := collective.Barrier(ctx, w); err != nil {
							b.Error(err)
						}
						if w.Rank() == 0 {
							b.ResetTimer()
						}
						for range b.N {
							if err := call(ctx, w, options...); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
		}
	}
}
