package zones

import (
	"fmt"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Layout is the processes of a fleet. Zone z has the ranks z·Members … (z+1)·Members−1,
// of which the first are its delegates, and the very first leads.
type Layout struct {
	// Zones is their number, Members how many processes each has.
	Zones, Members protocol.Rank
	// Delegates is how many of them are delegates.
	Delegates protocol.Rank
}

func (y *Layout) check() error {
	switch {
	case y.Zones < 1 || y.Members < 1 || y.Size() > logp.MaxSize:
		return fmt.Errorf("zones: %d zones of %d processes: at most %d processes can be simulated", y.Zones, y.Members, logp.MaxSize)
	case y.Delegates < 1 || y.Delegates > y.Members || y.Delegates > maxDelegates:
		return fmt.Errorf("zones: %d delegates of %d processes: choose a number between 1 and %d", y.Delegates, y.Members, min(y.Members, maxDelegates))
	}
	return nil
}

// maxDelegates keeps the number of a broadcast to a byte.
const maxDelegates = 100

// Size is the number of all processes.
func (y *Layout) Size() protocol.Rank { return y.Zones * y.Members }

// zoneOf has the zone of each process.
func (y *Layout) zoneOf() []int32 {
	of := make([]int32, y.Size())
	for r := range of {
		of[r] = int32(protocol.Rank(r) / y.Members)
	}
	return of
}

// onBackbone is a delegate's rank on the backbone.
func (y *Layout) onBackbone(zone, delegate protocol.Rank) protocol.Rank {
	return zone*y.Delegates + delegate
}

// ofBackbone is the process that has a rank on the backbone.
func (y *Layout) ofBackbone(r protocol.Rank) protocol.Rank {
	return r/y.Delegates*y.Members + r%y.Delegates
}
