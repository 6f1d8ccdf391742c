package zones

import (
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// Body is what a message carries: that of its broadcast, which broadcast that is, and
// when it began. So each broadcast has a clock of its own.
type Body struct {
	broadcast.Body
	Began int32
	Layer layer
}

// Process is one process in a broadcast to the fleet. It is a [protocol.Machine].
type Process struct {
	*run
	zone, member protocol.Rank
	parts        []part // by layer: the backbone goes first, since other zones wait for it
	// When this process is to begin a broadcast on the backbone, and in its zone, if it
	// does not learn before that another one did.
	backboneDue, zoneDue protocol.Time
}

// part is a process's part in one layer.
type part struct {
	layer   layer
	began   protocol.Time
	process *broadcast.Process
}

// run is what the processes of one run share: plans, and memory for calls.
type run struct {
	*plans
	message broadcast.Message
	action  broadcast.Action
}

// reset makes the process as good as new.
func (p *Process) reset() {
	p.parts = p.parts[:0]
	p.backboneDue, p.zoneDue = protocol.Never, protocol.Never
	if p.zone*p.Members+p.member == p.origin {
		p.zoneDue = 0
		p.watchBackbone(0)
	}
}

// Complete reports whether the process has the message.
func (p *Process) Complete() bool { return len(p.parts) > 0 || p.zoneDue == 0 }

// Receive takes a message that has arrived.
func (p *Process) Receive(now protocol.Time, m *protocol.Message[Body]) {
	first := p.first(m.Body.Layer)
	t := p.part(m.Body.Layer, protocol.Time(m.Body.Began))
	p.message = broadcast.Message{From: p.local(t.layer, m.From), Phase: m.Phase, Body: m.Body.Body}
	t.process.Receive(now-t.began, &p.message)
	if !first {
		return
	}
	if p.overBackbone(t.layer) {
		p.backboneDue = protocol.Never
		p.watchZone(now)
	} else {
		p.zoneDue = protocol.Never
		p.watchBackbone(now)
	}
}

// watchBackbone has a delegate of the origin's zone, which has the message, broadcast it
// to the backbone: the lead at once, each other one if those before it do not.
func (p *Process) watchBackbone(now protocol.Time) {
	if p.member < p.Delegates && p.zone == p.origin/p.Members && p.first(0) {
		p.backboneDue = now + protocol.Time(p.member)*p.takeover
	}
}

// watchZone has a delegate of another zone, which has the message from the backbone,
// broadcast it in its zone in the same way.
func (p *Process) watchZone(now protocol.Time) {
	if p.zone != p.origin/p.Members && p.first(layer(p.Delegates)) {
		p.zoneDue = now + protocol.Time(p.member)*p.takeover
	}
}

// Next says what to send now that the port is free.
func (p *Process) Next(now protocol.Time, a *protocol.Action[Body]) {
	a.Wait()
	if p.backboneDue <= now {
		p.backboneDue = protocol.Never
		p.part(layer(p.member), now)
	}
	if p.ask(now, a, true) {
		return
	}
	if p.zoneDue <= now {
		p.zoneDue = protocol.Never
		p.part(p.own(), now)
	}
	if p.ask(now, a, false) {
		return
	}
	if due := min(p.backboneDue, p.zoneDue); due != protocol.Never {
		waitUntil(a, due)
	}
}

// ask asks the parts over the backbone, or those in the zone, and reports whether one of
// them sends. If not, a says for how long to wait.
func (p *Process) ask(now protocol.Time, a *protocol.Action[Body], backbone bool) (sends bool) {
	in := &p.action
	for i := range p.parts {
		t := &p.parts[i]
		if p.overBackbone(t.layer) != backbone {
			continue
		}
		switch t.process.Next(now-t.began, in); in.Verb {
		case protocol.Send:
			a.Send(in.Phase, p.global(t.layer, in.To), Body{in.Body, int32(t.began), t.layer})
			a.Queued, a.At = in.Queued, in.At+t.began
			return true
		case protocol.WaitUntil:
			waitUntil(a, in.At+t.began)
		}
	}
	return false
}

// waitUntil has a wait until a time, or an earlier one that it has.
func waitUntil[B any](a *protocol.Action[B], at protocol.Time) {
	if a.Verb == protocol.WaitUntil {
		at = min(at, a.At)
	}
	a.WaitUntil(at)
}

// own is the layer that this process begins in its zone.
func (p *Process) own() layer {
	if p.zone == p.origin/p.Members {
		return layer(2 * p.Delegates)
	}
	return layer(p.Delegates + p.member)
}

// overBackbone reports whether a layer goes over the backbone.
func (p *plans) overBackbone(of layer) bool { return protocol.Rank(of) < p.Delegates }

// first reports whether the process has no part yet in any layer of that kind.
func (p *Process) first(of layer) bool {
	return !slices.ContainsFunc(p.parts, func(t part) bool { return p.overBackbone(t.layer) == p.overBackbone(of) })
}

// part is the process's part in a layer, which it takes up if it has none.
func (p *Process) part(of layer, began protocol.Time) *part {
	i, ok := slices.BinarySearchFunc(p.parts, of, func(t part, of layer) int { return int(t.layer) - int(of) })
	if !ok {
		rank := p.local(of, p.zone*p.Members+p.member)
		p.parts = slices.Insert(p.parts, i, part{of, began, p.byLayer[of].Process(rank)})
	}
	return &p.parts[i]
}

// local is a process's rank in a layer, global the process that has one.
func (p *Process) local(of layer, r protocol.Rank) protocol.Rank {
	if p.overBackbone(of) {
		return p.onBackbone(r/p.Members, r%p.Members)
	}
	return r % p.Members
}

func (p *Process) global(of layer, r protocol.Rank) protocol.Rank {
	if p.overBackbone(of) {
		return p.ofBackbone(r)
	}
	return p.zone*p.Members + r
}
