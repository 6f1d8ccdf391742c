package membership

import (
	"cmp"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Ballot numbers one attempt to decide the next view. Ballots are ordered by round,
// then by the rank of the proposer that owns them, so no two members ever use the
// same one. The zero Ballot is below all that are used.
type Ballot struct {
	Round uint32
	Rank  protocol.Rank
}

// maxRound is the highest valid round. No correct member reaches it: rounds begin
// again with every view.
const maxRound = 1 << 30

func (b Ballot) compare(o Ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), cmp.Compare(b.Rank, o.Rank))
}

func (b Ballot) less(o Ballot) bool { return b.compare(o) < 0 }

// String returns the ballot as round and rank.
func (b Ballot) String() string { return fmt.Sprintf("%d.%d", b.Round, b.Rank) }

// aboveAll returns a ballot above those that members of a view can own in a round.
func aboveAll(round uint32, v *View) Ballot {
	if v.Has(MaxSlots - 1) {
		round++
	}
	return Ballot{round, MaxSlots - 1}
}
