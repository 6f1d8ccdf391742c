package stream

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// flow is a member's state of one root's stream.
type flow struct {
	root        protocol.Rank
	incarnation uint64
	ended       bool // its root is no longer in the view
	positions
	ahead map[uint64]segment // segments that arrived behind a hole
	// aheadBytes is the size of those in ahead.
	aheadBytes int
	store      store
	assembly
	fedAt    protocol.Time // when the tree last brought the next segment
	arrived  arrival       // the last segment, however it has arrived
	offered  arrival       // at the right neighbor, of a segment that the tree has yet to bring
	activeAt protocol.Time // when its root last sent something
	links
	foster     foster
	acks       acks
	processing processing
	credit     credit
	correction correction
	pull       pull
	scheduled  bool // it is in Member.scheduled
	tailProbe  tailProbe
}

// positions are numbers of segments.
type positions struct {
	// next is the first segment that is missing: all before it have arrived or were
	// given up. wanted is the number after the last segment known to exist.
	next, wanted uint64
	// viewStart is where the present view began. delivered is the first segment that has
	// not been delivered; it is less than next only while the member is frozen.
	viewStart, delivered uint64
	// lost is the number after the first segment that was given up. If zero, none was.
	lost uint64
	// cut is where the view that is about to end ends. If zero, that is not known.
	// Segments before it are accepted even if the inbox is full: all members wait for
	// them.
	cut       uint64
	frozenAt  uint64 // where the member was frozen last; see shareEnd
	forwarded uint64 // the number after the last segment that was forwarded
}

// assembly puts messages together.
type assembly struct {
	reassembly *reassemblyBuffer // of the message that is arriving
	partial    partial
	labeled    bool   // the message in partial has a label
	topic      string // of the last message that had one
	count      count  // of lost messages
}

// links are the neighbors in the tree; see route.go.
type links struct {
	parent   protocol.Rank
	children []protocol.Rank // members that this one forwards to, in sending order
	ackers   []protocol.Rank // members whose acknowledgments count here (stable.go)
	grantors []protocol.Rank // members whose credits count here (window.go)
}

// firstAhead returns the lowest number that arrived behind a hole.
func (f *flow) firstAhead() uint64 {
	return slices.Min(slices.Collect(maps.Keys(f.ahead)))
}

// get returns a segment that is here.
func (f *flow) get(number uint64) (seg segment, ok bool) {
	seg, ok = f.store.get(number)
	if !ok {
		seg, ok = f.ahead[number]
	}
	return seg, ok
}

// lostBefore reports whether any segment before a number was given up.
func (f *flow) lostBefore(number uint64) bool { return f.lost > 0 && f.lost <= number }

// has reports whether a segment is here already, or was given up.
func (f *flow) has(number uint64) bool {
	_, ahead := f.ahead[number]
	return ahead || number < f.next
}
