package topology

import (
	"iter"

	"github.com/pleach-go/pleach/protocol"
)

// Children returns r's children in sending order.
func Children(t Tree, r protocol.Rank) iter.Seq[protocol.Rank] {
	return func(yield func(protocol.Rank) bool) {
		for i := 0; ; i++ {
			child, ok := t.Child(r, i)
			if !ok || !yield(child) {
				return
			}
		}
	}
}

// Subtree returns r and all its descendants, parents before children and
// siblings in sending order.
func Subtree(t Tree, r protocol.Rank) iter.Seq[protocol.Rank] {
	return func(yield func(protocol.Rank) bool) {
		w := walker{tree: t, top: r, at: r}
		for ok := true; ok && yield(w.at); {
			ok = w.next()
		}
	}
}

// FinishTime returns when the last process is colored if no process fails, in the
// LogP model (Culler et al. 1993): the i-th child, from 0, of a process colored at
// c is colored at c + i·o + 2o + l. It takes time in proportion to the size, and
// no memory.
func FinishTime(t Tree, l, o protocol.Time) protocol.Time {
	if moved, ok := t.(rooted); ok {
		t = moved.Tree
	}
	// In-order trees are cheap to traverse from the root, but each question about
	// a rank starts again at the root.
	if t, ok := t.(interface {
		finishTime(l, o protocol.Time) protocol.Time
	}); ok {
		return t.finishTime(l, o)
	}
	return finishByWalk(t, l, o)
}

func finishByWalk(t Tree, l, o protocol.Time) protocol.Time {
	var finish protocol.Time
	w := walker{tree: t, top: t.Root(), at: t.Root()}
	for ok := true; ok; ok = w.next() {
		finish = max(finish, w.waits*o+w.hops*(2*o+l))
	}
	return finish
}

// walker traverses a subtree in preorder. It returns to parents by asking for
// them instead of keeping a stack, so its memory does not depend on the depth or
// width of the tree.
type walker struct {
	tree    Tree
	top, at protocol.Rank
	// On the path from top to at: the messages, and the messages to earlier
	// siblings that they waited for.
	hops, waits protocol.Time
}

// next moves to the next rank and reports whether there is one.
func (w *walker) next() bool {
	i := 0
	child, ok := w.tree.Child(w.at, i)
	for !ok {
		if w.at == w.top {
			return false
		}
		w.at, i = w.tree.Parent(w.at)
		w.hops, w.waits = w.hops-1, w.waits-protocol.Time(i)
		i++
		child, ok = w.tree.Child(w.at, i)
	}
	w.at, w.hops, w.waits = child, w.hops+1, w.waits+protocol.Time(i)
	return true
}
