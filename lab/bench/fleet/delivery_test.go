package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/bench/fleet"
)

// Broadcasts of a fleet arrive once and in order in all zones, while delegates are killed,
// a zone is cut off, and another one dies and comes back. `make soak KIND=Fleet` runs many
// seeds, with 512 members: 100 of them take three quarters of an hour.
func TestDeliveryFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("some ten seconds")
	}
	config := fleet.Config{
		Zones: 3, Members: 5, Delay: 5 * time.Millisecond, Time: 8 * time.Second, Rate: 50, Size: 64,
		Kill: 500 * time.Millisecond, Cut: 3 * time.Second, Down: time.Second,
	}
	if testutil.Seeds.On() || testutil.Seed.On() {
		config = fleet.Config{
			Zones: 16, Members: 32, Delay: 20 * time.Millisecond, Time: 15 * time.Second, Rate: 20, Size: 64,
			Kill: 500 * time.Millisecond, Cut: 5 * time.Second, Down: 3 * time.Second,
		}
	}
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		config.Seed = seed
		result, err := fleet.Run(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		if result.OutOfOrder > 0 || result.Deliveries == 0 {
			t.Errorf("%d of %d deliveries out of order", result.OutOfOrder, result.Deliveries)
		}
		return testutil.SoakReport{
			Delivered: result.Deliveries, Lost: result.Lost, Duplicated: result.Twice,
			CatchUp: time.Duration(result.DrainMS * float64(time.Millisecond)),
		}
	})
}
