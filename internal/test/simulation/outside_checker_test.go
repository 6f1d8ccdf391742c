package simulation

import (
	"bytes"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/protocol"
)

// outsideAsks counts the requests of a member to processes outside its view.
type outsideAsks struct {
	since protocol.Time
	seeds int
}

// asks checks a request of a member: it asks others, and seeds one at a time, not more often than
// every two seconds.
func (c *checker) asks(p *process, a *lifecycle.Ask) {
	if a.Address == p.address || a.Address == "" {
		c.fail("%v asks itself, or nobody: %T to %q", p, a.Request, a.Address)
	}
	switch a.Request.(type) {
	case control.Introduce, control.Founding:
		asks := &p.outside.asks
		asks.seeds++
		if most := int((c.sim.now - asks.since) / (2 * second)); asks.seeds > most {
			c.fail("%v has asked %d seeds in %d s", p, asks.seeds, (c.sim.now-asks.since)/second)
		}
	}
}

// removes checks that a member which ends because of another process's view is not in it.
func (c *checker) removes(p *process, r *lifecycle.Remove) {
	c.sim.result.Removed++
	v, ok := p.group.views[r.View]
	switch {
	case r.View <= p.history.last():
		c.fail("%v ends because of view %d, and has installed view %d", p, r.View, p.history.last())
	case !ok && c.sim.plan.begin != founded:
		c.fail("%v ends because of view %d, which its group has not decided", p, r.View)
	case ok && v.Holds(p.self.Rank, p.self.Incarnation):
		c.fail("%v ends because of view %d, which has it", p, r.View)
	}
}

// answers checks the reply of a member: it tells only the view that it has installed, and what has
// led there.
func (c *checker) answers(p *process, request control.Request, reply []byte) {
	body, err := control.Open(reply)
	var view uint64
	var decisions []byte
	switch request.(type) {
	case control.Introduce:
		i, err2 := control.DecodeIntroduction(body)
		if err != nil || err2 != nil || i.View == nil {
			return
		}
		view, decisions = i.View.Number, i.Decisions.Encode(nil)
	case control.View:
		r, err2 := control.DecodeView(body)
		if err != nil || err2 != nil {
			return
		}
		view = r.View.Number
	case control.Decisions:
		view, decisions = p.history.last(), body
	default:
		return
	}
	if last := p.history.last(); view != last && p.outside.removed == nil {
		c.fail("%v answers with view %d, and has installed view %d", p, view, last)
	}
	if d := p.machine.Decisions(); decisions != nil && !bytes.Equal(decisions, d.Encode(nil)) {
		c.fail("%v answers with decisions that have not led to its view", p)
	}
}
