package membership

import "math/bits"

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

// covers reports whether s contains all of o.
func (s set) covers(o set) bool {
	for i := range s {
		if o[i]&^s[i] != 0 {
			return false
		}
	}
	return true
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
