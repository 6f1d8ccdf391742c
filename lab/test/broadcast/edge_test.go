package broadcast_test

import (
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// The smallest groups, in every configuration, from every root and with every
// set of dead: everything ends, and reaches all it promises to.
func TestSmallestGroups(t *testing.T) {
	for size := protocol.Rank(1); size <= 3; size++ {
		for _, lo := range [][2]protocol.Time{{0, 1}, {2, 1}, {1, 3}} {
			for _, s := range everything(size, lo[0], lo[1]) {
				ring := []protocol.Rank{0, 1, 2}[:size]
				for _, s.Root = range ring {
					trial := newTrial(t, s)
					for dead := range everySet(size) {
						moved := make([]protocol.Rank, len(dead))
						for i, r := range dead {
							moved[i] = (r + s.Root) % size
						}
						faults := logp.Faults{Dead: moved}
						r := trial.run(faults)
						if size == 1 && r.Total() > 0 {
							trial.failf(faults, "%d messages, to nobody", r.Total())
						}
						nobodyDead := len(dead) == 0 && s.Dissemination != "gossip"
						if r.Unreached > 0 && (nobodyDead || promisesLiveness(&s)) {
							trial.failf(faults, "ranks %v are never reached", trial.unreached(faults))
						}
					}
				}
			}
		}
	}
}
