package stream

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// flow is what a member knows of one root's stream.
type flow struct {
	root        protocol.Rank
	incarnation uint64
	// next is the first segment not yet here: all before it are. wanted is the
	// number after the last one known to exist.
	next, wanted uint64
	// base is where the present view has begun; delivered is the first segment
	// that has not been delivered: before next only while frozen.
	viewStart, delivered uint64
	ended                bool // its root is not in the view any more
	// lost is the number after the first segment that was given up; 0: none was.
	lost uint64
	// cut is where the view that is about to end ends; 0: nowhere yet. What is
	// before is taken, room or not: all wait for it.
	cut uint64
	// ahead are segments that came before their turn.
	ahead      map[uint64]segment
	aheadBytes int
	store      store
	reassembly *reassemblyBuffer // for the message that comes in
	partial    partial
	fedAt      protocol.Time   // when the tree last brought the next segment
	forwarded  uint64          // the number after the last segment passed on
	parent     protocol.Rank   // in the tree
	children   []protocol.Rank // in the order in which they are sent to
	foster     foster
	acks       acks
	correction correction
	pull       pull
	scheduled  bool // it is in Member.scheduled
	tailProbe  tailProbe
}

// firstAhead is the lowest number that came before its turn.
func (f *flow) firstAhead() uint64 {
	return slices.Min(slices.Collect(maps.Keys(f.ahead)))
}

// get returns a segment that is here.
func (f *flow) get(number uint64) (seg segment, ok bool) {
	if seg, ok = f.store.get(number); !ok {
		seg, ok = f.ahead[number]
	}
	return seg, ok
}

// lacks reports whether anything before a number was given up.
func (f *flow) lostBefore(number uint64) bool { return f.lost > 0 && f.lost <= number }

// has reports whether a segment is here already.
func (f *flow) has(number uint64) bool {
	if number < f.next || len(f.ahead) == 0 {
		return number < f.next
	}
	_, ahead := f.ahead[number]
	return ahead
}
