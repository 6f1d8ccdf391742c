//go:build !unix

package bench

import (
	"context"

	"github.com/pleach-go/pleach/bootstrap"
)

// Survivor would be a member in a process of its own.
type Survivor struct {
	Place bootstrap.Place
	Again bool
}

// Ready would tell that this member is where it belongs.
func (*Survivor) Ready() {}

// Sees would tell what this member sees.
func (*Survivor) Sees(uint64, []int) {}

// Stabilize would measure.
func Stabilize(context.Context, Stabilization) (StabilizationResult, error) {
	return StabilizationResult{}, errNeedsUnix
}

// ServeSurvivor would be a process that Stabilize starts.
func ServeSurvivor(string, func(context.Context, *Survivor) error) error { return errNeedsUnix }

// PleachSurvivor would be a member of a group.
func PleachSurvivor(context.Context, *Survivor) error { return errNeedsUnix }
