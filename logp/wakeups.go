package logp

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// wakeups are the processes that asked to be woken, by time. Many ask for the
// same few moments (a synchronized start), so there are few lists and a sorted
// slice of them is quick to search.
type wakeups struct {
	lists []wakeup // by time, latest first
	spare [][]int32
}

type wakeup struct {
	at    protocol.Time
	ranks []int32
}

func (w *wakeups) reset() {
	for len(w.lists) > 0 {
		w.take(w.next())
	}
}

func (w *wakeups) add(t protocol.Time, rank int32) {
	i := len(w.lists)
	for i > 0 && w.lists[i-1].at < t {
		i--
	}
	if i == 0 || w.lists[i-1].at != t {
		var ranks []int32
		if n := len(w.spare); n > 0 {
			ranks, w.spare = w.spare[n-1], w.spare[:n-1]
		}
		w.lists = slices.Insert(w.lists, i, wakeup{t, ranks})
		i++
	}
	list := &w.lists[i-1]
	list.ranks = append(list.ranks, rank)
}

// take removes and returns the processes to be woken at t; they are valid until
// the next add.
func (w *wakeups) take(t protocol.Time) []int32 {
	n := len(w.lists) - 1
	if n < 0 || w.lists[n].at != t {
		return nil
	}
	ranks := w.lists[n].ranks
	w.lists = w.lists[:n]
	w.spare = append(w.spare, ranks[:0])
	return ranks
}

// next is the time of the earliest wakeup, or Never.
func (w *wakeups) next() protocol.Time {
	if len(w.lists) == 0 {
		return protocol.Never
	}
	return w.lists[len(w.lists)-1].at
}
