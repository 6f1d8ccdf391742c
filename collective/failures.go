package collective

import "slices"

// Who has failed is known by the first view without them. Views are the same
// everywhere, so a number of a view says which failures are meant: those that are
// acknowledged, those that an agreement knows of, and who is in a world that Shrink
// makes.

// noteGone takes in who is not in the present view any more.
func (e *Engine) noteGone() {
	for r := range e.config.Size {
		if _, there := slices.BinarySearch(e.live, r); !there && e.gone[r] == 0 {
			e.gone[r] = e.view
		}
	}
}

// liveIn returns the ranks of a view.
func (e *Engine) liveIn(view uint64) (ranks []int) {
	for r := range e.config.Size {
		if gone := e.gone[r]; gone == 0 || gone > view {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// failedBetween returns who failed after a view, and not after another one.
func (e *Engine) failedBetween(after, until uint64) (ranks []int) {
	for r, gone := range e.gone {
		if gone > after && gone <= until {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// changesSince returns the numbers of the views since one in which somebody was
// gone, in order.
func (e *Engine) changesSince(view uint64) (views []uint64) {
	for _, gone := range e.gone {
		if gone > view {
			views = append(views, gone)
		}
	}
	slices.Sort(views)
	return slices.Compact(views)
}

// AckFailed acknowledges all failures that are known here, and returns who has
// failed: an [Agree] that is to [Report] does not tell of them any more once all
// have acknowledged them. It is MPI_Comm_failure_ack and
// MPI_Comm_failure_get_acked of ULFM in one. Nothing else changes: other calls
// that are to report end with a [*FailedError] as long as somebody of the world is
// dead. [Shrink] makes one in which nobody is.
func (p Comm) AckFailed() []int {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acked = e.view
	return e.failedRanks()
}
