package membership

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Log is the message streams that views cut. The program or its message layer
// implements it, and the machine calls it. Its methods are the application side of
// the flush protocol of view synchrony: Freeze and Thaw are block and unblock, and a
// cut is the set of messages that all survivors deliver in the old view.
//
// Same-view delivery needs two things of a log:
//
//   - From Freeze to Thaw or Install, it sends nothing as a root and delivers
//     nothing beyond the positions that Freeze returned last. It keeps what arrives
//     and passes it on as always.
//   - It keeps messages up to a cut available to other members until the next
//     Install but one.
type Log interface {
	// Freeze stops sending as a root and delivering. It returns the position of
	// each stream that has advanced since the last view, in any order. Called when
	// already frozen, it also counts what has arrived since.
	Freeze() []Position
	// Thaw resumes sending and delivering in the current view: the attempt was
	// canceled.
	Thaw()
	// Flush starts fetching everything up to a cut. Nothing is delivered yet: the
	// view is not decided. The log is frozen, and the last call counts.
	Flush(cut []Position)
	// Flushed reports whether everything up to the last cut is here.
	Flushed() bool
	// Install begins a decided view: the log delivers everything up to the last
	// cut, drops what removed roots sent beyond it, and resumes sending in the new
	// view. If this member is not in the view, it has left, and no call follows.
	Install(v *View)
}

// Position is a position in the stream of a root.
type Position struct {
	Root        protocol.Rank
	Incarnation uint64
	// Next is the first missing sequence number: everything before it is here.
	Next uint64
	// Holder is a member that has everything before Next. A member that has accepted
	// a cut has all of it, so if the holder is gone, most others serve as well.
	Holder protocol.Rank
}

// compareStream orders positions by their streams.
func compareStream(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Incarnation, b.Incarnation))
}

// merge returns the larger Next of every stream in two sorted lists.
func merge(a, b []Position) []Position {
	all := append(slices.Clone(a), b...)
	// Among equals the lowest holder comes last and counts, so that the result does
	// not depend on the order of acknowledgments.
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
