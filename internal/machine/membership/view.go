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
	// Meta is what the process tells the others about itself; see [Machine.SetMeta].
	Meta string `json:",omitempty"`
	// Synced says that the process has the state of the group; see [Machine.SetSynced].
	Synced bool `json:",omitempty"`
	// Observer says that the process does not count for a quorum; see voters.go.
	Observer bool `json:",omitempty"`
	// Version is the highest protocol version that the process speaks.
	Version uint16 `json:",omitempty"`
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
	// Version is the protocol version of the group, which all members speak.
	Version uint16
	// Slots is the number of ranks, holes included: 0 … Slots−1.
	Slots   protocol.Rank
	Members Members
	// Former are the last members of the holes. They are part of the agreed view so
	// that any coordinator, even one that has just joined, can restore the rank of a
	// process that returns (thesis §3.2: "This mapping is maintained by all the nodes").
	Former Members
}

// ErrView is wrapped by every error about an invalid view.
var ErrView = errors.New("membership: view makes no sense")

// index returns the index of a rank in Members.
func (v *View) index(r protocol.Rank) (int, bool) { return v.Members.Index(r) }

// Has reports whether the view has a member of rank r.
func (v *View) Has(r protocol.Rank) bool {
	_, ok := v.index(r)
	return ok
}

// Member returns the member of rank r, or false if there is none.
func (v *View) Member(r protocol.Rank) (Member, bool) {
	m := v.Members.Find(r)
	if m == nil {
		return Member{}, false
	}
	return *m, true
}

// named returns the index of the member with an identity. It looks at all members: a
// machine that asks about its own view has an index of the names.
func (v *View) named(identity string) (int, bool) {
	for i, m := range v.Members.All() {
		if m.Identity == identity {
			return i, true
		}
	}
	return 0, false
}

// Holds reports whether that incarnation of a member is in the view.
func (v *View) Holds(r protocol.Rank, incarnation uint64) bool {
	m := v.Members.Find(r)
	return m != nil && m.Incarnation == incarnation
}

// Holes returns the ranks without a member, in ascending order.
func (v *View) Holes() []protocol.Rank { return slices.Collect(v.Members.holes(v.Slots)) }

// Named returns the member with an identity, or nil if there is none.
func (v *View) Named(identity string) *Member {
	if i, ok := v.named(identity); ok {
		return v.Members.At(i)
	}
	return nil
}

// Equal reports whether two views are the same.
func (v *View) Equal(w *View) bool {
	return v.Number == w.Number && v.Version == w.Version && v.Slots == w.Slots && v.Members.equal(w.Members) &&
		v.Former.equal(w.Former)
}

// String returns the view for logs: its number, its size and its ranks.
func (v *View) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "view %d: %d of %d slots {", v.Number, v.Members.Len(), v.Slots)
	for i := 0; i < v.Members.Len(); {
		first, last := v.Members.At(i).Rank, v.Members.At(i).Rank
		for i++; i < v.Members.Len() && v.Members.At(i).Rank == last+1; i++ {
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
	if v.Members.Len() == 0 {
		return fmt.Errorf("%w: view %d has no members", ErrView, v.Number)
	}
	for _, list := range []Members{v.Members, v.Former} {
		for _, m := range list.All() {
			if m.Rank >= v.Slots {
				return fmt.Errorf("%w: rank %d is out of place in view %d of %d slots", ErrView, m.Rank, v.Number, v.Slots)
			}
			if err := m.check(); err != nil {
				return err
			}
		}
	}
	identities := make(map[string]bool, v.Members.Len())
	for _, m := range v.Members.All() {
		if m.Version < v.Version {
			return &VersionError{v.Version, *m}
		}
		if identities[m.Identity] {
			return fmt.Errorf("%w: identity %q is there twice", ErrView, m.Identity)
		}
		identities[m.Identity] = true
	}
	if err := v.checkVoters(); err != nil {
		return err
	}
	for _, m := range v.Former.All() {
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
	if len(m.Meta) > MaxMeta {
		return fmt.Errorf("%w: the meta of rank %d has %d bytes: at most %d", ErrView, m.Rank, len(m.Meta), MaxMeta)
	}
	if m.Identity == "" {
		return fmt.Errorf("%w: rank %d has no identity", ErrView, m.Rank)
	}
	return nil
}
