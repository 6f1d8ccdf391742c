package simulation

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/protocol"
)

// What the checker knows of services, of all processes together.

// epoch is one order: that of a group, or one that has begun anew because no member knew it.
type epoch struct {
	group  *group
	view   uint64 // in which it has begun anew; 0: with the group
	number uint64 // in checker.epochs
	log    []sequencer.Message
	writes []write
	// places are those of operations in writes, from 1.
	places map[uint64]uint64
	values [registerCount]uint64
	// completed has the highest place of an operation that has ended by a time.
	completed []completion
	tokens    map[uint64]uint64 // of leases, by the number of the message
	token     uint64            // the highest
	// covered is up to which token the processes that begin the order know those of earlier orders:
	// by their disks, if clocks are set back. A token that only others know may come again (ADR 81).
	covered uint64
}

// write is one that was applied, and the value before.
type write struct{ op, before uint64 }

// completion is the end of an operation.
type completion struct {
	at    protocol.Time
	place uint64
}

// serviceChecker is what the checker knows of services.
type serviceChecker struct {
	epochs   []*epoch
	holdings []*holding
	owners   map[ownership]*process
	// The highest tokens of each group, by partition, and of each order, of leases.
	tokens map[*group]*[partitionCount]uint64
}

// ownership is a partition of a group with the token of its owner.
type ownership struct {
	group *group
	handoff.Item
}

// epoch returns the order that a process begins in a view.
func (c *checker) epoch(by *process, view uint64) *epoch {
	g := by.group
	for _, e := range c.services.epochs {
		if e.group == g && e.view == view {
			return e
		}
	}
	e := &epoch{
		group: g, view: view, number: uint64(len(c.services.epochs)), places: make(map[uint64]uint64),
		tokens: make(map[uint64]uint64), covered: c.covered(by),
	}
	c.services.epochs = append(c.services.epochs, e)
	if view > 0 {
		c.anew(by, e)
	}
	return e
}

// covered returns the highest token that the members of a process's view are sure to exceed.
func (c *checker) covered(by *process) (highest uint64) {
	if !c.sim.plan.marks {
		return math.MaxUint64
	}
	v := by.machine.View()
	marks := make(map[string]uint64)
	for _, p := range c.sim.processes { // some may not have installed the view; the last one of an ID counts
		marks[p.identity] = p.host.leaseMark
	}
	for _, m := range v.Members.All() {
		highest = max(highest, marks[m.Identity])
	}
	return highest
}

// anew checks that no member knew an order that begins anew.
func (c *checker) anew(by *process, e *epoch) {
	c.sim.result.Anew++
	c.rolled(e)
	for _, p := range c.sim.processes {
		if p != by && p.state == running && p.group == e.group && slices.Contains(p.history.views, e.view) &&
			p.services.order.joining.Knows() {
			c.fail("the order begins anew in view %d, but %v knows it", e.view, p)
		}
	}
}

// epochOf returns an order by its number.
func (c *checker) epochOf(p *process, number uint64) *epoch {
	e := c.services.epochs[number]
	if e.group != p.group {
		c.fail("%v gets the order of another group", p)
	}
	return e
}

// ordered checks that all members deliver one order, that nothing comes twice and that nothing is
// left out, although they die or are cut off later.
func (c *checker) ordered(o *orderPart, m *sequencer.Message) {
	e := o.epoch
	if m.Number != o.delivered+1 {
		c.fail("%v delivers message %d after %d", o.process, m.Number, o.delivered)
		return
	}
	c.sim.result.Ordered++
	c.sim.hash.add(uint64(c.sim.now), uint64(o.process.id), m.Number)
	if m.Number == uint64(len(e.log))+1 {
		e.log = append(e.log, *m)
		return
	}
	if m.Number > uint64(len(e.log)) {
		c.fail("%v delivers message %d, but the order has %d", o.process, m.Number, len(e.log))
		return
	}
	if was := &e.log[m.Number-1]; was.Origin != m.Origin || was.Topic != m.Topic || !bytes.Equal(was.Data, m.Data) {
		c.fail("%v delivers as message %d one of %v, others one of %v", o.process, m.Number, m.Origin, was.Origin)
	}
}

// applied checks that all members apply the same writes, each of them once.
func (c *checker) applied(o *orderPart, place, op uint64, register uint8, before uint64) {
	e := o.epoch
	switch {
	case place <= uint64(len(e.writes)):
		if was := e.writes[place-1]; was != (write{op, before}) {
			c.fail("%v applies %d as write %d after %d, others %d after %d", o.process, op, place, before, was.op, was.before)
		}
	case place > uint64(len(e.writes))+1:
		c.fail("%v applies write %d, but there are %d", o.process, place, len(e.writes))
	case e.places[op] != 0:
		c.fail("%v applies operation %d again, as write %d after %d", o.process, op, place, e.places[op])
	case e.values[register] != before:
		c.fail("%v finds %d in register %d, which has %d", o.process, before, register, e.values[register])
	default:
		e.writes, e.places[op], e.values[register] = append(e.writes, write{op, before}), place, op
	}
}

// completed checks the result of an operation of a client, and that it is linearizable: its place
// is behind those of all operations that had ended when it began. The order itself is the
// witness.
func (c *checker) completed(o *orderPart, op *operation, result []byte) {
	e, place := o.epoch, o.registers.applied
	c.sim.result.Operations++
	least := uint64(0)
	if i, _ := slices.BinarySearchFunc(e.completed, op.invoked,
		func(c completion, t protocol.Time) int { return cmp.Compare(c.at, t) }); i > 0 {
		least = e.completed[i-1].place
	}
	if op.machine == "registers" {
		d := wire.NewDecoder(result)
		place = d.Uint64()
		if was := e.places[op.number]; was != place || was == 0 || e.writes[place-1].before != d.Uint64() {
			c.fail("%v has another result of operation %d than the others", o.process, op.number)
			return
		}
		least++
	}
	if place < least {
		c.fail("%v ends operation %d at place %d, but one that had ended before it began has %d", o.process, op.number,
			place, least)
	}
	if n := len(e.completed); n == 0 || e.completed[n-1].place < place {
		e.completed = append(e.completed, completion{c.sim.now, place})
	}
}

// granted checks the token of a lease: the same at all members, and higher than all before. One that
// is not used may be lower than those of earlier orders.
func (c *checker) granted(o *orderPart, token uint64, used bool) {
	e, number := o.epoch, o.delivered
	was, ok := e.tokens[number]
	switch {
	case ok && was != token:
		c.fail("%v grants a lease with token %d, others with %d", o.process, token, was)
	case !ok && token <= e.token:
		c.fail("%v grants a lease with token %d after %d", o.process, token, e.token)
	case !ok && used && token <= min(c.tokenBefore(e), e.covered):
		c.fail("%v grants a lease with token %d after one of an earlier order with %d", o.process, token, c.tokenBefore(e))
	case !ok:
		e.tokens[number], e.token = token, token
	}
}

// tokenBefore returns the highest token of a lease in all orders before one.
func (c *checker) tokenBefore(e *epoch) (highest uint64) {
	for _, before := range c.services.epochs[:e.number] {
		highest = max(highest, before.token)
	}
	return highest
}

// holds checks that no other process holds the lease, by its own clock: not in an earlier order
// either, which no member knows any more.
func (c *checker) holds(h *holding) {
	if !h.valid() {
		return // it was told too late
	}
	all := &c.services.holdings
	*all = slices.DeleteFunc(*all, func(o *holding) bool { return !o.valid() })
	for _, o := range *all {
		if o != h {
			c.fail("%v and %v hold a lease, with tokens %d and %d", h.leases.process, o.leases.process, h.token, o.token)
		}
	}
	if !slices.Contains(*all, h) {
		*all = append(*all, h)
		c.sim.result.Leases++
	}
}

// owns checks that the token of an owner is no other's.
func (c *checker) owns(h *shardPart, item handoff.Item) {
	key := ownership{h.process.group, item}
	if other := c.services.owners[key]; other != nil && other != h.process {
		c.fail("%v and %v own partition %d with token %d", h.process, other, item.Partition, item.Token)
	}
	c.services.owners[key] = h.process
	if c.services.tokens[key.group] == nil {
		c.services.tokens[key.group] = new([partitionCount]uint64)
	}
	for _, g := range c.groups[:slices.Index(c.groups, key.group)] {
		if before := c.services.tokens[g]; before != nil && before[item.Partition] >= item.Token {
			c.fail("%v owns partition %d with token %d after one of an earlier group with %d", h.process, item.Partition,
				item.Token, before[item.Partition])
		}
	}
	highest := &c.services.tokens[key.group][item.Partition]
	*highest = max(*highest, item.Token)
	c.sim.result.Owned++
	c.serves(h)
}

// serves checks that no two processes serve a partition at one time.
func (c *checker) serves(h *shardPart) {
	for partition := range partitionCount {
		token, ok := h.machine.Serves(c.sim.now, partition)
		if !ok {
			continue
		}
		for _, p := range c.sim.processes {
			if p.services == nil || p == h.process || p.group != h.process.group || p.state != running || p.paused {
				continue
			}
			if other, ok := p.services.shards.machine.Serves(c.sim.now, partition); ok {
				c.fail("%v and %v serve partition %d, with tokens %d and %d", h.process, p, partition, token, other)
			}
		}
	}
}
