package simulation

import (
	"github.com/pleach-go/pleach/protocol"
)

// event is something that happens at a time. Events of one time happen in the order in
// which they were scheduled.
type event struct {
	at    protocol.Time
	order uint64
	do    func()
}

// events is a heap, the earliest event first.
type events struct {
	heap []event
	last uint64
}

func (q *events) before(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (q *events) push(at protocol.Time, do func()) {
	q.last++
	q.heap = append(q.heap, event{at, q.last, do})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *events) earliest() (protocol.Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

func (q *events) pop() event {
	first, n := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap[n] = q.heap[n], event{}
	q.heap = q.heap[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// hashState is the hash of all that happened: FNV-1a (Fowler, Noll & Vo 1991) over words,
// which takes an eighth of the steps that bytes would.
type hashState uint64

const (
	hashBasis hashState = 14695981039346656037
	hashPrime hashState = 1099511628211
)

func (h *hashState) add(numbers ...uint64) {
	for _, n := range numbers {
		*h = (*h ^ hashState(n)) * hashPrime
		*h ^= *h >> 32 // a product moves bits up only
	}
}

func (h *hashState) text(s string) {
	for i := range len(s) {
		*h = (*h ^ hashState(s[i])) * hashPrime
	}
}
