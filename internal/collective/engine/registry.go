package engine

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sync"
)

// comms is an engine's place among the communicators of its process: those that Shrink and
// Split derive share the link of the outermost one, the world.
type comms struct {
	registry   *commRegistry
	contextID  uint64    // 0: the world
	worldRanks []int     // by rank: the rank in the world; nil: the same
	nested     []*Engine // derived from this one
}

// commRegistry finds the communicator that a message is for. The message of a nested
// communicator begins with its context ID, MPI's word for what separates communicators
// on one network.
type commRegistry struct {
	link   Link
	mu     sync.Mutex
	nested map[uint64]*Engine // by context ID
}

// contextIDSize is the size of a context ID in front of a message: typeNested 1, ID 7.
const contextIDSize = 8

const contextIDBits = 1<<(8*(contextIDSize-1)) - 1

// lookup returns the communicator that a message is for, or nil.
func (r *commRegistry) lookup(message []byte) *Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nested[contextIDOf(message)]
}

// contextIDOf returns the context ID in front of a message.
func contextIDOf(message []byte) uint64 { return binary.BigEndian.Uint64(message) & contextIDBits }

func (r *commRegistry) add(e *Engine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nested[e.comms.contextID] = e
}

// deriveContextID returns the context ID of the communicator that an agreement of another
// one derives, by its number, or a Split, by its call and color. All members compute the
// same without communication.
func deriveContextID(parent uint64, numbers ...uint64) uint64 {
	h := fnv.New64a()
	for _, n := range append([]uint64{parent}, numbers...) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, n))
	}
	return h.Sum64() & contextIDBits
}

// nestedLink carries the messages of a nested communicator.
type nestedLink struct {
	link       Link
	prefix     []byte
	worldRanks []int
}

func newNestedLink(link Link, contextID uint64, worldRanks []int) Link {
	prefix := binary.BigEndian.AppendUint64(nil, uint64(typeNested)<<(8*(contextIDSize-1))|contextID)
	nested := nestedLink{link, prefix, worldRanks}
	if z, ok := link.(ZeroCopyLink); ok {
		return &nestedZeroCopyLink{nested, z}
	}
	return &nested
}

// nestedZeroCopyLink is a nestedLink over a [ZeroCopyLink].
type nestedZeroCopyLink struct {
	nestedLink
	zeroCopy ZeroCopyLink
}

// SendOwned implements [ZeroCopyLink].
func (l *nestedZeroCopyLink) SendOwned(ctx context.Context, to int, head, body []byte, release func()) error {
	return l.zeroCopy.SendOwned(ctx, l.worldRanks[to], slices.Concat(l.prefix, head), body, release)
}

// Poll implements [PollingLink].
func (l *nestedLink) Poll(from int) (received, ok bool) {
	if p, is := l.link.(PollingLink); is {
		return p.Poll(l.worldRanks[from])
	}
	return false, false
}

// Rest implements [PollingLink].
func (l *nestedLink) Rest() {
	if p, is := l.link.(PollingLink); is {
		p.Rest()
	}
}

// Send implements [Link].
func (l *nestedLink) Send(ctx context.Context, to int, head, body []byte) error {
	return l.link.Send(ctx, l.worldRanks[to], slices.Concat(l.prefix, head), body)
}

// worldRank returns the world rank of a rank.
func (e *Engine) worldRank(rank int) int {
	if e.comms.worldRanks == nil {
		return rank
	}
	return e.comms.worldRanks[rank]
}

// rankOfWorld returns the rank of a world rank, and whether it is a member.
func (e *Engine) rankOfWorld(world int) (int, bool) {
	if e.comms.worldRanks == nil {
		return world, true
	}
	return slices.BinarySearch(e.comms.worldRanks, world)
}

// ranksOf returns, of some ranks of the parent, those that are members, by their own
// ranks.
func (e *Engine) ranksOf(parent *Engine, ranks []int) (own []int) {
	for _, r := range ranks {
		if rank, ok := e.rankOfWorld(parent.worldRank(r)); ok {
			own = append(own, rank)
		}
	}
	return own
}
