package logp

import (
	"math/bits"
	"math/rand/v2"

	"github.com/pleach-go/pleach/protocol"
)

// DeadSet is the processes that are dead from the start of a run. It takes one
// bit a process, however many are dead, and its memory is used again from run to
// run.
type DeadSet struct {
	ranks  bitmap
	source rand.PCG
}

// NewDeadSet makes an empty set for a group of that size, 1 to [MaxSize].
func NewDeadSet(size protocol.Rank) *DeadSet { return &DeadSet{ranks: newBitmap(int(size))} }

// Draw makes the set n different ranks other than the root, drawn uniformly; the
// same seed draws the same ranks.
func (d *DeadSet) Draw(root protocol.Rank, n int, seed uint64) {
	d.ranks.clear()
	d.source.Seed(seed, 0xdead)
	rng := rand.New(&d.source)
	others := d.ranks.size - 1
	other := func(i int) int { // the i-th rank that is not the root
		if i >= int(root) {
			i++
		}
		return i
	}
	// Floyd's sampling: n draws whatever the size of the group.
	for i := others - min(n, others); i < others; i++ {
		r := other(int(rng.Int64N(int64(i) + 1)))
		if d.ranks.has(r) {
			r = other(i)
		}
		d.ranks.set(r)
	}
}

// Add adds ranks to the set.
func (d *DeadSet) Add(ranks ...protocol.Rank) error {
	faults := Faults{Dead: ranks}
	if err := faults.check(protocol.Rank(d.ranks.size)); err != nil {
		return err
	}
	for _, r := range ranks {
		d.ranks.set(int(r))
	}
	return nil
}

// Len is the number of dead.
func (d *DeadSet) Len() int { return d.ranks.count() }

// Ranks are the dead in ascending order.
func (d *DeadSet) Ranks() []protocol.Rank {
	ranks := make([]protocol.Rank, 0, d.Len())
	for w, word := range d.ranks.words {
		for ; word != 0; word &= word - 1 {
			ranks = append(ranks, protocol.Rank(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return ranks
}

// RandomDead draws n different ranks other than the root, uniformly, in
// ascending order. The same seed draws the same ranks.
func RandomDead(size, root protocol.Rank, n int, seed uint64) []protocol.Rank {
	d := NewDeadSet(size)
	d.Draw(root, n, seed)
	return d.Ranks()
}
