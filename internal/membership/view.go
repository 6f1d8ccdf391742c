package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// Limits of a view. They keep every frame below a mebibyte, as long as at most 16,000
// roots have sent since the view before: a cut lists them.
const (
	// MaxSlots is the largest number of ranks in a view, holes included.
	MaxSlots = 1 << 16
	// MaxText is the longest identity, address or domain, in bytes.
	MaxText = 255
)

// Member is one incarnation of a process in a view.
type Member struct {
	Rank protocol.Rank
	// Identity names the process across restarts. Joining again with it restores the
	// old rank if that is free.
	Identity string
	// Address is where the process is reached.
	Address string
	// Domain is its failure domain (a rack, a zone). If empty, unknown.
	Domain string
	// Incarnation is the number of the view that has admitted the process. The group
	// gives it, so no clock decides which process is the later one. Rank and
	// incarnation together name a stream of messages.
	Incarnation uint64
	// Nonce is a random number that a process draws when it starts. It tells a
	// repeated request of one process from the request of another process with the
	// same identity. If zero, it is not known: the member is of a group that has
	// started as a whole.
	Nonce uint64
}

// View is a numbered, agreed set of members.
type View struct {
	Number uint64
	// Slots is the number of ranks, holes included: 0 … Slots−1.
	Slots protocol.Rank
	// Members are in ascending order of their ranks.
	Members []Member
	// Former are the last members of the holes, in ascending order of their ranks.
	// They are part of the agreed view so that any coordinator, even one that has
	// just joined, can restore the rank of a process that returns (thesis §3.2:
	// "This mapping is maintained by all the nodes").
	Former []Member
}

// ErrView is wrapped by every error about an invalid view.
var ErrView = errors.New("membership: view makes no sense")

// index returns the index of a rank in Members. Ranks ascend, so the index is the
// rank minus the holes before it, and the search range is the number of holes, which
// is mostly small. It is a hot path, so it copies no members.
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

// Has reports whether the view has a member of rank r.
func (v *View) Has(r protocol.Rank) bool {
	_, ok := v.index(r)
	return ok
}

// Member returns the member of rank r, or false if there is none.
func (v *View) Member(r protocol.Rank) (Member, bool) {
	i, ok := v.index(r)
	if !ok {
		return Member{}, false
	}
	return v.Members[i], true
}

// Holds reports whether that incarnation of a member is in the view.
func (v *View) Holds(r protocol.Rank, incarnation uint64) bool {
	m, ok := v.Member(r)
	return ok && m.Incarnation == incarnation
}

// Coordinator returns the lowest rank, or NoRank if the view is empty.
func (v *View) Coordinator() protocol.Rank {
	if len(v.Members) == 0 {
		return protocol.NoRank
	}
	return v.Members[0].Rank
}

// Holes returns the ranks without a member, in ascending order.
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

// Needed returns the size of the smallest quorum for the next view, which includes
// the lowest rank.
func (v *View) Needed() int { return (len(v.Members) + 1) / 2 }

// majority reports whether s is a quorum: more than half of the members, or exactly
// half with the lowest rank. Any two quorums intersect, which is what Paxos requires.
func (v *View) majority(s set) bool {
	n := s.count()
	return 2*n > len(v.Members) || 2*n == len(v.Members) && s.has(0)
}

// Equal reports whether two views are the same.
func (v *View) Equal(w *View) bool {
	return v.Number == w.Number && v.Slots == w.Slots && slices.Equal(v.Members, w.Members) && slices.Equal(v.Former, w.Former)
}

// String returns the view for logs: its number, its size and its ranks.
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

// check returns an error if the view is invalid.
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
			return fmt.Errorf("%w: identity %q is both a member and a former one", ErrView, m.Identity)
		}
	}
	return nil
}

// check returns an error if the texts of a member are invalid.
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
