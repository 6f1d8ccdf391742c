package fleetsimulation

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// checker holds the members to what a fleet promises: messages of one origin arrive once, in
// order and without a gap; a notice of loss comes only to a zone that was away for longer
// than others wait; and in the end all members have everything, and may broadcast.
type checker struct {
	sim *Simulation
	err error
	met relay.Time // when the zones had met
	backbones
	origins []*member // all members that were ready
}

// progress is what a member has of an origin.
type progress struct {
	first, next uint64
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%.6f s: %s", float64(c.sim.now)/1e9, fmt.Sprintf(format, args...))
		c.sim.record("", "%v", c.err)
	}
}

// deliver checks a message that a program takes.
func (c *checker) deliver(m *member, msg *relay.Message) {
	p := m.got[msg.Origin]
	if p == nil {
		p = &progress{first: msg.Seq - msg.Lost, next: msg.Seq - msg.Lost}
		m.got[msg.Origin] = p
		if o := c.find(msg.Origin); o != nil && p.first != 1 && c.mustBegin(m, o) {
			c.fail("%s has nothing of %s before message %d", m.id, o.id, p.first)
		}
	}
	switch {
	case msg.Lost > 0:
		c.sim.result.Lost += msg.Lost
		if msg.Seq-msg.Lost != p.next || !c.mayLose(msg.Origin) {
			c.fail("%s is told that messages %d to %d of %s are lost, and has %d", m.id, msg.Seq-msg.Lost, msg.Seq-1,
				msg.Origin.ID, p.next-1)
		}
		c.sim.record(m.id, "is told that messages %d to %d of %s are lost", msg.Seq-msg.Lost, msg.Seq-1, msg.Origin.ID)
		p.next = msg.Seq
		return
	case msg.Seq != p.next:
		c.fail("%s gets message %d of %s, incarnation %d, after %d", m.id, msg.Seq, msg.Origin.ID, msg.Origin.Incarnation,
			p.next-1)
	case len(msg.Data) < 8 || binary.BigEndian.Uint64(msg.Data) != msg.Seq:
		c.fail("%s gets other data as message %d of %s", m.id, msg.Seq, msg.Origin.ID)
	}
	p.next++
	c.sim.result.Delivered++
}

// mayLose reports whether zones may have lost messages: the plan has less patience than the
// longest absence takes, or lets whole zones die. The last messages of a lead that has died may
// be lost to its own zone if others have overwritten them before it has another lead.
func (c *checker) mayLose(o relay.Origin) bool {
	origin := c.find(o)
	return c.sim.plan.patience < 30*second || c.parted || origin != nil && origin.dead
}

// find returns the process of an origin.
func (c *checker) find(o relay.Origin) *member {
	if i := slices.IndexFunc(c.origins, func(m *member) bool { return m.origin == o }); i >= 0 {
		return c.origins[i]
	}
	return nil
}

// mustBegin reports whether a member gets an origin's messages from the first on: it was
// there before the origin, and no zone has died.
func (c *checker) mustBegin(m, o *member) bool {
	return c.sim.plan.dead == 0 && !c.parted && m.ready < c.met && o.ready > 0
}

// complete reports whether all members have everything.
func (c *checker) complete() bool { return c.lacking() == "" && c.apart() == "" }

// lacking says what a member lacks, if one does.
func (c *checker) lacking() string {
	live := c.sim.members()
	for _, z := range c.sim.zones {
		if len(z.alive()) < c.sim.plan.members && (z.busy || len(z.view) > 0) && len(z.alive()) <= len(z.view)/2 {
			return z.name + " has lost its majority"
		}
	}
	for _, m := range live {
		if m.ready == 0 || m.wrote < uint64(c.sim.plan.messages) || m.pending != nil {
			return fmt.Sprintf("%s has broadcast %d of %d messages", m.id, m.wrote, c.sim.plan.messages)
		}
	}
	for _, o := range c.origins {
		var most uint64
		if !o.dead {
			most = o.wrote
		}
		for _, m := range live {
			if p := m.got[o.origin]; p != nil {
				most = max(most, p.next-1)
			}
		}
		for _, m := range live {
			p := m.got[o.origin]
			switch {
			case m == o || most == 0:
			case p == nil && !c.mustBegin(m, o):
			case p == nil || p.next-1 != most:
				return fmt.Sprintf("%s has messages of %s, incarnation %d, up to %d, and not up to %d", m.id, o.id,
					o.origin.Incarnation, p.last(), most)
			}
		}
	}
	return ""
}

func (p *progress) last() uint64 {
	if p == nil {
		return 0
	}
	return p.next - 1
}

// failStuck says that the fleet has not recovered.
func (c *checker) failStuck() {
	if what := cmp.Or(c.lacking(), c.apart()); what != "" {
		c.fail("%d s after the trouble: %s", maxCalm/second, what)
	}
}
