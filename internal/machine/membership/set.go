package membership

import (
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// set is a bit set of members of a view, by their index in it. Acknowledgments carry
// sets, never counts: two messages of one child and none of another must not look
// like one of each.
type set []byte

func newSet(n int) set { return make(set, (n+7)/8) }

// fits reports whether a received set is valid for a view of n members.
func (s set) fits(n int) bool {
	return len(s) == (n+7)/8 && (n%8 == 0 || s[len(s)-1]>>(n%8) == 0)
}

func (s set) has(i int) bool { return i>>3 < len(s) && s[i>>3]&(1<<(i&7)) != 0 }

func (s set) add(i int) { s[i>>3] |= 1 << (i & 7) }

func (s set) remove(i int) { s[i>>3] &^= 1 << (i & 7) }

// union adds another set of the same view.
func (s set) union(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// covers reports whether s contains all of o. Either may be nil, which is empty.
func (s set) covers(o set) bool {
	if s == nil {
		return o.count() == 0
	}
	for i := range o {
		if o[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// common returns the members that are in both.
func (s set) common(o set) set {
	c := make(set, min(len(s), len(o)))
	for i := range c {
		c[i] = s[i] & o[i]
	}
	return c
}

// meets reports whether the two have a member in common.
func (s set) meets(o set) bool {
	for i := range min(len(s), len(o)) {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// complement returns the members of a view of n that are not in s, which may be nil.
func (s set) complement(n int) set {
	c := newSet(n)
	for i := range c {
		c[i] = 0xff
	}
	for i, b := range s {
		c[i] &^= b
	}
	if rest := n % 8; rest != 0 {
		c[len(c)-1] &= 1<<rest - 1
	}
	return c
}

// drop removes a member of a view, and others, and reports whether one was in s.
func (s set) drop(v *View, by protocol.Rank, others set) (dropped bool) {
	if s == nil {
		return false
	}
	if i, ok := v.index(by); ok && s.has(i) {
		s.remove(i)
		dropped = true
	}
	for i, b := range others {
		dropped = dropped || s[i]&b != 0
		s[i] &^= b
	}
	return dropped
}

func (s set) count() int {
	n := 0
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

// each returns the members' indices, in ascending order.
func (s set) each() []int {
	list := make([]int, 0, s.count())
	for i, b := range s {
		for ; b != 0; b &= b - 1 {
			list = append(list, i<<3+bits.TrailingZeros8(b))
		}
	}
	return list
}
