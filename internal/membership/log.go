package membership

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Log is the streams of messages that views cut: it belongs to the program, or
// to what carries its messages, and is called by the machine.
//
// What it must hold for same-view delivery (all who go from one view to the next
// together have delivered the same messages in the first):
//
//   - From Freeze to Thaw or Install, nothing is sent as a root and nothing
//     beyond what Freeze returned last is delivered to the program. What arrives
//     is kept and passed on as always.
//   - What is kept up to a cut stays available to others until the next Install
//     but one.
type Log interface {
	// Freeze stops sending as a root and delivering. It returns how far each
	// stream that moved since the last view has got here, in any order. Called
	// when already frozen, it returns what has come since, too.
	Freeze() []Position
	// Thaw says that the attempt is off: all goes on in the present view.
	Thaw()
	// Flush asks for everything up to a cut. It is fetched, not delivered: the
	// view is not decided yet. The last call counts; the log is frozen then.
	Flush(cut []Position)
	// Flushed reports whether everything up to the last cut is here.
	Flushed() bool
	// Install says that the view is decided: everything up to the last cut is
	// delivered, what roots that are gone sent beyond it is dropped, and sending
	// goes on in the new view. If this member is not in it, it has left: nothing
	// follows.
	Install(v *View)
}

// Position is how far a root's stream has got.
type Position struct {
	Root        protocol.Rank
	Incarnation uint64
	// Next is the first number that is missing: everything before is here.
	Next uint64
	// Holder is somebody who had it. Whoever has accepted a cut has all of it,
	// so if the holder is gone, most others will do.
	Holder protocol.Rank
}

// compareStream orders Haves by the stream they are about.
func compareStream(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Incarnation, b.Incarnation))
}

// merge takes the larger Next of every stream, of two lists in order.
func merge(a, b []Position) []Position {
	all := append(slices.Clone(a), b...)
	// Among equals the lowest holder comes last and counts, so that the result
	// does not depend on the order in which acknowledgments come.
	slices.SortFunc(all, func(x, y Position) int {
		return cmp.Or(compareStream(x, y), cmp.Compare(x.Next, y.Next), cmp.Compare(y.Holder, x.Holder))
	})
	merged := all[:0]
	for i, h := range all {
		if i+1 < len(all) && compareStream(h, all[i+1]) == 0 {
			continue
		}
		merged = append(merged, h)
	}
	return merged
}
