package membership

import (
	"cmp"
	"fmt"
	"maps"
)

// checker holds what all members together have installed, and complains of
// anything that the package comment rules out.
type checker struct {
	views       map[uint64]View
	cuts        map[uint64]string // by number, with what was delivered before it
	leavers     map[string]bool   // identity and incarnation
	nonces      map[uint64]string // the process that has drawn it
	isQuorum    func(v *View, s set) bool
	withArbiter bool  // there is one
	arbiter     judge // what it has granted
}

func newChecker() *checker {
	return &checker{
		views: map[uint64]View{}, cuts: map[uint64]string{}, leavers: map[string]bool{},
		nonces: map[uint64]string{},
	}
}

// leaves returns the checker of a world in which a member wants to leave.
func (c *checker) leaves(m Member) *checker {
	fresh := *c
	fresh.leavers = maps.Clone(c.leavers)
	fresh.leavers[who(m)] = true
	return &fresh
}

func who(m Member) string { return fmt.Sprintf("%s#%d", m.Identity, m.Incarnation) }

// installed takes in that a member has gone on to a view, after it had delivered
// what the digest says in the one before.
func (c *checker) installed(self Member, v View, digest string) error {
	if err := v.check(); err != nil {
		return err
	}
	if !v.Holds(self.Rank, self.Incarnation) {
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
	return cmp.Or(c.primary(&v), c.processes(&v))
}

// countsMost is the rule of quorums once more: more than half of the voters, or half of them with
// the lowest one.
func countsMost(v *View, s set) bool {
	in, out, tie := 0, 0, 0
	for i, m := range v.Members.All() {
		switch {
		case m.Observer:
		case s.has(i):
			in++
			if in+out == 1 {
				tie = 1
			}
		default:
			out++
		}
	}
	return in+tie > out
}

// processes checks that a member stands for one process: that which has drawn the
// nonce, and has been admitted by the view that its incarnation names. (By two views,
// if it did not hear of the first before it was removed.) No identity is in a view
// twice: the view's own check has seen to that.
func (c *checker) processes(v *View) error {
	for _, m := range v.Members.All() {
		if m.Incarnation > v.Number {
			return fmt.Errorf("incarnations: %s in view %d", who(*m), v.Number)
		}
		if m.Nonce == 0 {
			continue
		}
		process := fmt.Sprint(m.Identity, " at ", m.Address)
		if other, ok := c.nonces[m.Nonce]; ok && other != process {
			return fmt.Errorf("nonces: %s and %s have drawn %d", other, process, m.Nonce)
		}
		c.nonces[m.Nonce] = process
	}
	return nil
}

// primary checks that a view goes on from a majority of the one before, which
// rules out two at once.
func (c *checker) primary(v *View) error {
	before, ok := c.views[v.Number-1]
	if !ok {
		return nil // its members have installed it later, or it is the first
	}
	stay := newSet(before.Members.Len())
	for i, m := range before.Members.All() {
		if v.Holds(m.Rank, m.Incarnation) || c.leavers[who(*m)] {
			stay.add(i)
		}
	}
	if c.withArbiter {
		e := before.electorate()
		e.arbiter = true
		var side []Member
		for _, i := range stay.each() {
			if m := before.Members.At(i); e.has(i) {
				side = append(side, *m)
			}
		}
		if granted := c.arbiter == (judge{v.Number, sideText(side)}); !e.majority(stay) && (!granted || !e.half(stay)) {
			return fmt.Errorf("two primaries: %v has neither a majority of %v nor a grant", v, &before)
		}
		return nil
	}
	if c.isQuorum != nil && !c.isQuorum(&before, stay) || c.isQuorum == nil && !countsMost(&before, stay) {
		return fmt.Errorf("two primaries: %v does not go on from a majority of %v", v, &before)
	}
	return nil
}
