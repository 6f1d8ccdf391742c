package broadcast

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/lab/bench"
)

// roundsBeforeFootprint come before a footprint is taken, as the first messages
// allocate.
const roundsBeforeFootprint = 5

// weigh computes what a member holds; before is what the process held without the
// group.
func (one *systemUnderTest) weigh(ctx context.Context, before bench.Footprint) error {
	for range roundsBeforeFootprint {
		if _, err := one.group.broadcast(ctx, limitOfFirst); err != nil {
			return fmt.Errorf("bench: %s: %w", one.System, err)
		}
	}
	after := bench.RestingFootprint(ctx)
	members := float64(one.Members)
	one.Goroutines = bench.Round(float64(after.Goroutines-before.Goroutines)/members, 1)
	one.Memory = bench.Round((float64(after.Memory())-float64(before.Memory()))/members, 0)
	return nil
}
