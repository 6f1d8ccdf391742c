package membership

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sort"

	"github.com/pleach-go/pleach/protocol"
)

// Members are members in ascending order of their ranks. The list does not change: a
// change makes another one that shares all memory with it but the chunks of the members
// that differ and the spine, a 64th of the list (a persistent data structure: Driscoll,
// Sarnak, Sleator & Tarjan 1989). So a view change costs a member what has changed, and
// views, streams, detectors and programs share one list. The zero value is empty.
type Members struct {
	chunks []chunk // by rank: that of rank r is chunks[r/chunkRanks]; the last is not empty
}

// chunkRanks is how many ranks a chunk covers: the bits of its set of ranks.
const chunkRanks = 64

// chunk has the members of some successive ranks. Its members never change.
type chunk struct {
	first     int    // index of its first member
	ranks     uint64 // the ranks that have a member
	observers uint64 // those of observers
	members   []Member
}

// MembersOf returns members of distinct ranks, in any order, as a list.
func MembersOf(members ...Member) Members {
	l, err := membersOf(slices.SortedFunc(slices.Values(members), byRank))
	if err != nil {
		panic(err) // a mistake of the caller: what comes from outside is checked before
	}
	return l
}

// membersOf returns a list that shares no memory yet. The ranks must ascend.
func membersOf(members []Member) (l Members, err error) {
	for i := range members {
		if r := members[i].Rank; r < 0 || i > 0 && r <= members[i-1].Rank {
			return l, fmt.Errorf("%w: rank %d is out of place", ErrView, r)
		}
	}
	for begin := 0; begin < len(members); {
		c, at, end := chunk{first: begin}, members[begin].Rank/chunkRanks, begin
		for ; end < len(members) && members[end].Rank/chunkRanks == at; end++ {
			c.mark(&members[end])
		}
		c.members = slices.Clone(members[begin:end]) // so that it can be freed separately
		for len(l.chunks) < int(at) {
			l.chunks = append(l.chunks, chunk{first: begin})
		}
		l.chunks, begin = append(l.chunks, c), end
	}
	return l, nil
}

// mark adds a member to the sets of ranks.
func (c *chunk) mark(m *Member) {
	c.ranks |= bit(m.Rank)
	if m.Observer {
		c.observers |= bit(m.Rank)
	}
}

// bit is that of a rank in the set of its chunk.
func bit(r protocol.Rank) uint64 { return 1 << (r % chunkRanks) }

// Len returns the number of members.
func (l Members) Len() int {
	if len(l.chunks) == 0 {
		return 0
	}
	last := &l.chunks[len(l.chunks)-1]
	return last.first + len(last.members)
}

// At returns the member with an index. It must not be changed.
func (l Members) At(i int) *Member {
	at := i / chunkRanks // without holes
	if c := &l.chunks[at]; uint(i-c.first) >= uint(len(c.members)) {
		at = sort.Search(len(l.chunks), func(k int) bool { return l.chunks[k].first > i }) - 1
		for len(l.chunks[at].members) == 0 { // it begins where the one before does
			at--
		}
	}
	c := &l.chunks[at]
	return &c.members[i-c.first]
}

// Index returns the index of a rank's member. If there is none, it is that of the next
// one.
func (l Members) Index(r protocol.Rank) (int, bool) {
	if r < 0 || int(r/chunkRanks) >= len(l.chunks) {
		return l.Len(), false
	}
	c := &l.chunks[r/chunkRanks]
	return c.first + bits.OnesCount64(c.ranks&(bit(r)-1)), c.ranks&bit(r) != 0
}

// Find returns the member of a rank, or nil if there is none.
func (l Members) Find(r protocol.Rank) *Member {
	if r < 0 || int(r/chunkRanks) >= len(l.chunks) {
		return nil
	}
	return l.chunks[r/chunkRanks].find(r)
}

func (c *chunk) find(r protocol.Rank) *Member {
	if c.ranks&bit(r) == 0 {
		return nil
	}
	return &c.members[bits.OnesCount64(c.ranks&(bit(r)-1))]
}

// All yields the members and their indices. The members must not be changed.
func (l Members) All() iter.Seq2[int, *Member] {
	return func(yield func(int, *Member) bool) {
		for k := range l.chunks {
			c := &l.chunks[k]
			for i := range c.members {
				if !yield(c.first+i, &c.members[i]) {
					return
				}
			}
		}
	}
}

// Since yields the members that an earlier list does not have in the same incarnation.
// It skips the chunks that the two share.
func (l Members) Since(before Members) iter.Seq[*Member] {
	return func(yield func(*Member) bool) {
		for k := range l.chunks {
			c, was := &l.chunks[k], &chunk{}
			if k < len(before.chunks) {
				was = &before.chunks[k]
			}
			if c.same(was) {
				continue
			}
			for i := range c.members {
				m := &c.members[i]
				if b := was.find(m.Rank); (b == nil || b.Incarnation != m.Incarnation) && !yield(m) {
					return
				}
			}
		}
	}
}

// same reports whether two chunks share their members.
func (c *chunk) same(o *chunk) bool {
	return c.ranks == o.ranks && (c.ranks == 0 || &c.members[0] == &o.members[0])
}

// change returns the list without some ranks, and then with further members, which
// replace those of their ranks.
func (l Members) change(without []protocol.Rank, with ...Member) Members {
	if len(without)+len(with) == 0 {
		return l
	}
	last := protocol.Rank(-1)
	for i := range with {
		last = max(last, with[i].Rank)
	}
	chunks := make([]chunk, max(len(l.chunks), int(last+chunkRanks)/chunkRanks))
	copy(chunks, l.chunks)
	for _, r := range without {
		chunks[r/chunkRanks].remove(r)
	}
	for i := range with {
		c := &chunks[with[i].Rank/chunkRanks]
		c.remove(with[i].Rank)
		c.insert(&with[i])
	}
	for len(chunks) > 0 && chunks[len(chunks)-1].ranks == 0 {
		chunks = chunks[:len(chunks)-1]
	}
	first := 0
	for i := range chunks {
		chunks[i].first = first
		first += len(chunks[i].members)
	}
	return Members{chunks}
}

// remove removes the member of a rank, if there is one. The members are copied.
func (c *chunk) remove(r protocol.Rank) {
	if c.ranks&bit(r) == 0 {
		return
	}
	i := bits.OnesCount64(c.ranks & (bit(r) - 1))
	c.members = slices.Concat(c.members[:i], c.members[i+1:])
	c.ranks &^= bit(r)
	c.observers &^= bit(r)
}

// insert inserts a member at a rank that has none. The members are copied.
func (c *chunk) insert(m *Member) {
	i := bits.OnesCount64(c.ranks & (bit(m.Rank) - 1))
	members := make([]Member, 0, len(c.members)+1)
	c.members = append(append(append(members, c.members[:i]...), *m), c.members[i:]...)
	c.mark(m)
}

// equal reports whether two lists have the same members.
func (l Members) equal(o Members) bool {
	return slices.EqualFunc(l.chunks, o.chunks, func(a, b chunk) bool {
		return a.same(&b) || slices.Equal(a.members, b.members)
	})
}

// holes yields the ranks without a member below a number of slots, in ascending order.
func (l Members) holes(slots protocol.Rank) iter.Seq[protocol.Rank] {
	return func(yield func(protocol.Rank) bool) {
		for first := protocol.Rank(0); first < slots; first += chunkRanks {
			free := ^uint64(0)
			if k := int(first / chunkRanks); k < len(l.chunks) {
				free = ^l.chunks[k].ranks
			}
			for ; free != 0; free &= free - 1 {
				if r := first + protocol.Rank(bits.TrailingZeros64(free)); r >= slots || !yield(r) {
					return
				}
			}
		}
	}
}

// MarshalJSON implements [json.Marshaler], so that a recorded config has the members.
func (l Members) MarshalJSON() ([]byte, error) {
	var list []*Member
	for _, m := range l.All() {
		list = append(list, m)
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Members) UnmarshalJSON(text []byte) error {
	var list []Member
	err := json.Unmarshal(text, &list)
	if slices.ContainsFunc(list, func(m Member) bool { return m.Rank >= MaxSlots }) {
		return fmt.Errorf("%w: a rank is above %d", ErrView, MaxSlots)
	}
	if err == nil {
		*l, err = membersOf(list)
	}
	return err
}
