package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// Limits of a view. They keep every frame below a mebibyte, as long as no more
// than 16,000 roots have sent since the view before: a cut lists them.
const (
	// MaxSlots is how many ranks a view may have, holes included.
	MaxSlots = 1 << 16
	// MaxText is the longest identity, address or domain, in bytes.
	MaxText = 255
)

// Member is somebody in a view.
type Member struct {
	Rank protocol.Rank
	// Identity is who it is, over all its starts: who comes back is known by it
	// and gets its old rank if that is free.
	Identity string
	// Address is where it is reached.
	Address string
	// Domain is what it fails with (a rack, a zone); empty: nothing known.
	Domain string
	// Incarnation is which start of it this is: larger each time. A clock makes
	// a good one: a hole is given only to who has a larger one than whoever was
	// there, since rank and incarnation together name a stream of messages.
	Incarnation uint64
}

// View is a numbered, agreed set of members.
type View struct {
	Number uint64
	// Slots is the number of ranks, holes included: 0 … Slots−1.
	Slots protocol.Rank
	// Members are in ascending order of their ranks.
	Members []Member
	// Former are those who had a hole's rank last, in ascending order. They are
	// part of what is agreed so that any coordinator, even one that has just
	// joined, gives a rank back to whom it belonged (thesis §3.2: "This mapping
	// is maintained by all the nodes").
	Former []Member
}

// ErrView is what every error about a view that makes no sense wraps.
var ErrView = errors.New("membership: view makes no sense")

// index finds a rank among the members. Ranks ascend, so a rank's index is itself
// less the holes before it: only as many places come into question as there are
// holes, which mostly are few. It is asked too often to copy members for it.
func (v *View) index(r protocol.Rank) (int, bool) {
	n := len(v.Members)
	high := max(0, min(int(r), n))
	low := max(0, min(int(r)-(int(v.Slots)-n), high))
	for low < high {
		if middle := (low + high) / 2; v.Members[middle].Rank < r {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < n && v.Members[low].Rank == r
}

// Has reports whether a rank is a member's.
func (v *View) Has(r protocol.Rank) bool {
	_, ok := v.index(r)
	return ok
}

// Member returns the member of a rank.
func (v *View) Member(r protocol.Rank) (Member, bool) {
	i, ok := v.index(r)
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// holds reports whether that very start of a member is in the view.
func (v *View) holds(r protocol.Rank, incarnation uint64) bool {
	m, ok := v.Member(r)
	return ok && m.Incarnation == incarnation
}

// Coordinator returns the lowest rank.
func (v *View) Coordinator() protocol.Rank {
	if len(v.Members) == 0 {
		return protocol.NoRank
	}
	return v.Members[0].Rank
}

// Holes returns the ranks that nobody has, in ascending order.
func (v *View) Holes() []protocol.Rank {
	var holes []protocol.Rank
	next := protocol.Rank(0)
	for _, m := range v.Members {
		for ; next < m.Rank; next++ {
			holes = append(holes, next)
		}
		next = m.Rank + 1
	}
	for ; next < v.Slots; next++ {
		holes = append(holes, next)
	}
	return holes
}

// Needed is how many members at least must go along with the next view, the lowest
// rank among them.
func (v *View) Needed() int { return (len(v.Members) + 1) / 2 }

// majority reports whether some members may decide for all: more than half, or
// exactly half if they hold the lowest rank. Any two such sets have a member in
// common, which is what Paxos asks for.
func (v *View) majority(s set) bool {
	n := s.count()
	return 2*n > len(v.Members) || 2*n == len(v.Members) && s.has(0)
}

// Equal reports whether two views are the same.
func (v *View) Equal(w *View) bool {
	return v.Number == w.Number && v.Slots == w.Slots && slices.Equal(v.Members, w.Members) && slices.Equal(v.Former, w.Former)
}

// String returns the view for logs: its number, how many, and who.
func (v *View) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "view %d: %d of %d slots {", v.Number, len(v.Members), v.Slots)
	for i := 0; i < len(v.Members); {
		first, last := v.Members[i].Rank, v.Members[i].Rank
		for i++; i < len(v.Members) && v.Members[i].Rank == last+1; i++ {
			last++
		}
		if b.String()[b.Len()-1] != '{' {
			b.WriteByte(' ')
		}
		if first == last {
			fmt.Fprintf(&b, "%d", first)
		} else {
			fmt.Fprintf(&b, "%d-%d", first, last)
		}
	}
	b.WriteByte('}')
	return b.String()
}

// check says what is wrong with a view.
func (v *View) check() error {
	if v.Slots < 1 || v.Slots > MaxSlots {
		return fmt.Errorf("%w: %d slots: choose 1 to %d", ErrView, v.Slots, MaxSlots)
	}
	if len(v.Members) == 0 {
		return fmt.Errorf("%w: view %d has no members", ErrView, v.Number)
	}
	for _, list := range [][]Member{v.Members, v.Former} {
		for i, m := range list {
			if m.Rank < 0 || m.Rank >= v.Slots || i > 0 && m.Rank <= list[i-1].Rank {
				return fmt.Errorf("%w: rank %d is out of place in view %d of %d slots", ErrView, m.Rank, v.Number, v.Slots)
			}
			if err := m.check(); err != nil {
				return err
			}
		}
	}
	identities := make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		if identities[m.Identity] {
			return fmt.Errorf("%w: identity %q is there twice", ErrView, m.Identity)
		}
		identities[m.Identity] = true
	}
	for _, m := range v.Former {
		if v.Has(m.Rank) {
			return fmt.Errorf("%w: rank %d is no hole", ErrView, m.Rank)
		}
		if identities[m.Identity] {
			return fmt.Errorf("%w: identity %q is both there and gone", ErrView, m.Identity)
		}
	}
	return nil
}

// check says what is wrong with a member's names.
func (m *Member) check() error {
	for _, text := range []string{m.Identity, m.Address, m.Domain} {
		if len(text) > MaxText {
			return fmt.Errorf("%w: %q… of rank %d has %d bytes: at most %d", ErrView, text[:16], m.Rank, len(text), MaxText)
		}
	}
	if m.Identity == "" {
		return fmt.Errorf("%w: rank %d has no identity", ErrView, m.Rank)
	}
	return nil
}
