package collective

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sync"
)

// family is all worlds of one process that go back to one: those that [Shrink]
// makes share the link of the first. Their messages have the world's name in front.
type commRegistry struct {
	link  Link
	mu    sync.Mutex
	comms map[uint64]*Engine // by name, but for the first
}

// nameSize is how long a name is in front of a message: within 1, name 7.
const contextIDSize = 8

// find returns the world that a message is for, or nil.
func (f *commRegistry) lookup(message []byte) *Engine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.comms[binary.BigEndian.Uint64(message)&contextIDBits]
}

func (f *commRegistry) add(w *Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.comms[w.contextID] = w
}

const contextIDBits = 1<<(8*(contextIDSize-1)) - 1

// nameOf names the world that a pact of another one makes. All of its members
// find the same name without asking each other.
func deriveContextID(parent, pact uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, parent), pact))
	return h.Sum64() & contextIDBits
}

// innerLink carries the messages of a world that is not the first.
type nestedLink struct {
	registry *commRegistry
	prefix   []byte
	ranks    []int
}

// Send implements [Link].
func (l *nestedLink) Send(ctx context.Context, to int, head, body []byte) error {
	return l.registry.link.Send(ctx, l.ranks[to], slices.Concat(l.prefix, head), body)
}

// rankOf returns who a rank of the family's first world is in this one.
func (e *Engine) rankOfWorld(first int) (int, bool) {
	if e.worldRanks == nil {
		return first, true
	}
	return slices.BinarySearch(e.worldRanks, first)
}

// ranksOf returns who, of the ranks of its parent, is in an inner world, by its
// own ranks.
func (e *Engine) ranksOf(parent *Engine, ranks []int) (own []int) {
	for _, r := range ranks {
		if rank, ok := e.rankOfWorld(parent.worldRank(r)); ok {
			own = append(own, rank)
		}
	}
	return own
}
