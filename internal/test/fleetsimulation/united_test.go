package fleetsimulation

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// backbones checks that zones come together: when nothing happens any more, all of them are in one
// backbone after a while, and stay there.
type backbones struct {
	together map[[2]*zone]relay.Time // when two zones were last in one backbone
	parted   bool                    // two were not for so long that others do not wait for them
}

const (
	// maxApart bounds how long zones take to be in one backbone when all of them reach each other.
	maxApart = 120 * second
	// maxDepartures bounds how often a delegate leaves a backbone meanwhile.
	maxDepartures = 8
	// restTime is how long nobody leaves after that.
	restTime = 15 * second
)

// watch notes, now and then, which zones are in one backbone.
func (c *checker) watch() {
	now := c.sim.now
	if c.together == nil {
		c.together = make(map[[2]*zone]relay.Time)
	}
	for i, z := range c.sim.zones {
		for _, o := range c.sim.zones[:i] {
			pair := [2]*zone{z, o}
			if c.met == 0 || z.meets(o) {
				c.together[pair] = now
			} else if now-c.together[pair] > c.sim.plan.patience-5*second {
				c.parted = true
			}
		}
	}
	c.sim.after(500*millisecond, c.watch)
}

// meets reports whether delegates of two zones are in one backbone.
func (z *zone) meets(o *zone) bool {
	return slices.ContainsFunc(z.alive(), func(m *member) bool {
		return m.session != nil && slices.ContainsFunc(o.alive(), func(other *member) bool {
			return other.session != nil && other.session.group == m.session.group && m.session.reaches(other.session)
		})
	})
}

// unite waits until all zones are in one backbone.
func (c *checker) unite() {
	began := c.sim.now
	if !c.sim.runUntil(began+maxApart, func() bool { return c.apart() == "" }) {
		c.fail("%d s after all zones reach each other: %s", maxApart/second, c.apart())
	}
	if c.sim.calm {
		c.sim.result.Apart = c.sim.now - began
	}
	for _, m := range c.sim.members() {
		c.sim.result.Departed = max(c.sim.result.Departed, m.departed)
		if m.departed > maxDepartures {
			c.fail("%s has left backbones %d times since all zones reach each other", m.id, m.departed)
		}
	}
}

// apart says which delegates are not in one backbone, or returns "".
func (c *checker) apart() string {
	var first *session
	delegates := 0
	for _, z := range c.sim.zones {
		switch {
		case z.side > 0:
			return z.name + " is cut off"
		case len(z.alive()) < c.sim.plan.members:
			return "members of " + z.name + " have yet to come back"
		}
		for _, m := range z.delegates() {
			s := m.session
			delegates++
			switch {
			case m.dead || m.ready == 0 || s == nil:
				return m.id + " is in no backbone"
			case !s.told.Quorum:
				return m.id + " is in a backbone without a quorum"
			case first == nil:
				first = s
			case first.group != s.group:
				return fmt.Sprintf("%s and %s are in different backbones", first.member.id, m.id)
			}
		}
	}
	if first != nil && len(first.group.sessions) != delegates {
		return fmt.Sprintf("the backbone has %d members, and there are %d delegates", len(first.group.sessions), delegates)
	}
	return ""
}

// rest checks that nobody leaves the backbone that all are in.
func (c *checker) rest() {
	if c.err != nil {
		return
	}
	before := 0
	for _, m := range c.sim.members() {
		before += m.departed
	}
	c.sim.runUntil(c.sim.now+restTime, nil)
	for _, m := range c.sim.members() {
		before -= m.departed
	}
	if what := c.apart(); before != 0 || what != "" {
		c.fail("delegates leave the backbone that all zones are in: %s", what)
	}
}
