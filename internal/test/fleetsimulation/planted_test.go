package fleetsimulation

import (
	"encoding/binary"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/relay"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The simulation finds bugs: each of these is planted, and found within some seeds.
func TestPlantedBugsAreFound(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the machines have no goroutines")
	}
	sent := 0
	for name, o := range map[string]Options{
		"zones that are cut off are not waited for": {Configure: func(c *relay.Config) { c.Patience = 0 }},
		"members never ask for what they miss": {Configure: func(c *relay.Config) {
			c.GapDelay = 1 << 62
		}},
		"nobody takes over from a lead or a gateway that is stuck": {Configure: func(c *relay.Config) { c.Stall = 1 << 50 }},
		"a message between zones is lost without a word": {Tamper: func(frame []byte) bool {
			_, n := binary.Uvarint(frame)
			sent++
			return frame[n] == 1 && sent%17 == 0 // kindData
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 300
			for seed := uint64(1); seed <= most; seed++ {
				if r := Run(seed, o); r.Err != nil {
					t.Logf("seed %d: %v", seed, r.Err)
					return
				}
			}
			t.Errorf("not found within %d seeds", most)
		})
	}
}

// A run depends on nothing but its seed.
func TestRunsAreRepeatable(t *testing.T) {
	for seed := range uint64(5) {
		if a, b := Run(seed+1, Options{}), Run(seed+1, Options{}); a != b {
			t.Errorf("two runs of seed %d: %+v, %+v", seed+1, a, b)
		}
	}
}
