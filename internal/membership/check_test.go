package membership

import "fmt"

// checker holds what all members together have installed, and complains of
// anything that the package comment rules out.
type checker struct {
	views    map[uint64]View
	cuts     map[uint64]string // by number, with what was delivered before it
	leavers  map[string]bool   // identity and incarnation
	isQuorum func(v *View, s set) bool
}

func newChecker() *checker {
	return &checker{views: map[uint64]View{}, cuts: map[uint64]string{}, leavers: map[string]bool{}}
}

func who(m Member) string { return fmt.Sprintf("%s#%d", m.Identity, m.Incarnation) }

// installed takes in that a member has gone on to a view, after it had delivered
// what the digest says in the one before.
func (c *checker) installed(self Member, v View, digest string) error {
	if err := v.check(); err != nil {
		return err
	}
	if !v.holds(self.Rank, self.Incarnation) {
		return fmt.Errorf("self-inclusion: %s installed %v without itself", who(self), &v)
	}
	if other, ok := c.views[v.Number]; ok {
		if !other.Equal(&v) {
			return fmt.Errorf("agreement: %s installed %v, others %v", who(self), &v, &other)
		}
		if cut := c.cuts[v.Number]; cut != digest {
			return fmt.Errorf("same-view delivery: before view %d, %s delivered %q, others %q", v.Number, who(self), digest, cut)
		}
		return nil
	}
	c.views[v.Number], c.cuts[v.Number] = v, digest
	return c.primary(&v)
}

// primary checks that a view goes on from a majority of the one before, which
// rules out two at once.
func (c *checker) primary(v *View) error {
	before, ok := c.views[v.Number-1]
	if !ok {
		return nil // its members have installed it later, or it is the first
	}
	stay := newSet(len(before.Members))
	for i, m := range before.Members {
		if v.holds(m.Rank, m.Incarnation) || c.leavers[who(m)] {
			stay.add(i)
		}
	}
	if c.isQuorum != nil && !c.isQuorum(&before, stay) || c.isQuorum == nil && !before.majority(stay) {
		return fmt.Errorf("two primaries: %v does not go on from a majority of %v", v, &before)
	}
	return nil
}
