package tcp

import (
	"iter"
	"sync/atomic"

	"github.com/pleach-go/pleach/protocol"
)

// table maps ranks to peers, each made when it is first needed: most members talk
// to a few only. Its pages are also made when needed, so that the high ranks of an
// open group cost little, and nothing moves when such a group grows. Every Send
// reads it without a lock.
type table []atomic.Pointer[page]

const pageSize = 1 << 10

type page [pageSize]atomic.Pointer[peer]

func newTable(ranks int) table { return make(table, (ranks+pageSize-1)/pageSize) }

// get returns the peer of a rank, or nil if it is not made yet.
func (t table) get(r protocol.Rank) *peer {
	if g := t[r/pageSize].Load(); g != nil {
		return g[r%pageSize].Load()
	}
	return nil
}

// add makes p the peer of its rank, unless there is one. It returns the peer of the
// rank.
func (t table) add(p *peer) *peer {
	g := &t[p.rank/pageSize]
	if g.Load() == nil {
		g.CompareAndSwap(nil, new(page))
	}
	entry := &g.Load()[p.rank%pageSize]
	entry.CompareAndSwap(nil, p)
	return entry.Load()
}

// all iterates over the peers that are made.
func (t table) all() iter.Seq[*peer] {
	return func(yield func(*peer) bool) {
		for i := range t {
			g := t[i].Load()
			for j := 0; g != nil && j < pageSize; j++ {
				if p := g[j].Load(); p != nil && !yield(p) {
					return
				}
			}
		}
	}
}
