package simulation

import (
	"bytes"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/internal/services/session"
	"github.com/pleach-go/pleach/protocol"
)

// orderPart is a process's part in the order, as package ordered drives it: at most one broadcast,
// one forwarded frame and one acknowledgment are on their way.
type orderPart struct {
	*services
	machine  *sequencer.Machine
	joining  *sequencer.Joining
	armed    protocol.Time
	callers  map[uint64]served // by the number of a request for the state
	requests uint64
	// What is on its way.
	casting, forwarding, acking bool
	// What the program has of the order.
	epoch     *epoch
	delivered uint64 // number of the last message
	replicas  session.Replicas
	registers registers
	asked     uint64 // mark that another member has asked for last
}

// served is a request for the state that waits.
type served struct {
	caller unicast.Caller
	reply  func([]byte, error)
}

// retryDelay is that of package ordered.
const retryDelay = 5 * millisecond

// Small sizes: few messages make several frames, and a small state has several blocks.
const (
	maxBatch   = 200
	stateBlock = 32
)

func (o *orderPart) begin(s *services) {
	p := s.process
	self := sequencer.Member{Rank: int(p.self.Rank), Incarnation: p.self.Incarnation}
	*o = orderPart{services: s, callers: make(map[uint64]served), armed: protocol.Never}
	o.machine = sequencer.New(sequencer.Config{
		Self: self, Safe: !p.sim.has(unsafeOrder), MaxBatch: maxBatch,
		Block: stateBlock,
	})
	o.joining = sequencer.NewJoining(o.machine, p.self.Incarnation == member.FirstIncarnation, p.sim.rng.Uint64)
	o.reset(p.sim.checker.epoch(p, 0))
	if o.joining.Knows() {
		o.leases.empty(o.epoch)
	}
	p.host.client.Again()
	if p.sim.has(sessionForgets) {
		p.host.client = session.NewClient[*operation](p.sim.clientID())
		for _, op := range p.host.operations {
			p.host.client.Propose(op.machine, op.command, op)
		}
	}
	p.do(func() { o.viewed(); o.tick() })
}

// reset empties the program's state.
func (o *orderPart) reset(e *epoch) {
	o.epoch, o.delivered = e, 0
	o.registers = registers{order: o}
	o.leases.reset()
	o.replicas = session.NewReplicas(map[string]session.Machine{"registers": &o.registers, "leases": &o.leases})
}

// viewed tells the machine of the view.
func (o *orderPart) viewed() {
	if o.active() {
		members, voters := o.members()
		o.machine.View(o.process.machine.View().Number, members, voters)
	}
}

// tick has time pass in joining.
func (o *orderPart) tick() {
	var members []sequencer.Member
	if o.active() {
		members, _ = o.members()
	}
	o.joining.View(o.process.machine.View().Number, members)
	o.joining.Tick(o.process.sim.now)
	o.carryOut()
}

// arm sets the timer of joining.
func (o *orderPart) arm() {
	if due := o.joining.Deadline(); due < o.armed {
		o.armed = due
		o.after(due-o.process.sim.now, func() {
			if o.armed == due {
				o.armed = protocol.Never
				o.tick()
			}
		})
	}
}

// send sends what the machine has to send.
func (o *orderPart) send() {
	for machine, data, ok := o.process.host.client.Next(); ok; machine, data, ok = o.process.host.client.Next() {
		o.machine.Submit(machine, data)
	}
	if !o.casting {
		if view, body, ok := o.machine.NextCast(); ok {
			o.casting = true
			o.fall()
			o.process.program.broadcast(append([]byte{orderService}, body...), func() {
				o.casting = false
				o.machine.CastDone(view, false)
			})
		}
	}
	if !o.forwarding {
		if f, ok := o.machine.NextForward(); ok {
			o.forwarding = true
			o.forward(f)
		}
	}
	if !o.acking {
		if to, body, ok := o.machine.NextAck(); ok {
			o.acking = true
			o.acknowledge(to, body)
		}
	}
}

// forward brings own messages to the leader.
func (o *orderPart) forward(f sequencer.Forward) {
	done := func(err error) {
		if err == nil {
			o.forwarding = false
			return
		}
		o.machine.ForwardFailed(f.View)
		o.after(retryDelay, func() { o.forwarding = false })
	}
	if f.To == int(o.process.self.Rank) {
		o.later(func() { done(o.machine.Accept(f.To, f.Body)) })
		return
	}
	o.request(f.To, forwardRequest, f.Body, protocol.Never, func(r unicast.Reply) { done(errorOf(r)) })
}

// acknowledge tells the leader what this member has received.
func (o *orderPart) acknowledge(to int, body []byte) {
	if o.process.sim.has(acknowledgedEarly) {
		body[len(body)-1] += 3
	}
	o.request(to, ackRequest, body, protocol.Never, func(r unicast.Reply) {
		if r.Err == nil {
			o.acking = false
			return
		}
		o.machine.AckFailed()
		o.after(retryDelay, func() { o.acking = false })
	})
}

// receive takes a broadcast of the order.
func (o *orderPart) receive(view uint64, from int, body []byte) {
	if mark, ok := sequencer.DecodeMark(body); ok && mark.Name != sequencer.Fresh && o.process.sim.has(markOfAnother) &&
		o.asked != 0 && o.joining.Knows() {
		body = wire.AppendUint64(bytes.Clone(body[:len(body)-8]), o.asked)
	}
	o.joining.Receive(view, from, body)
	o.carryOut()
}

// stateAsked takes a request for the state, or for a block of it.
func (o *orderPart) stateAsked(r unicast.Request, reply func([]byte, error)) {
	o.requests++
	o.callers[o.requests] = served{r.Caller, reply}
	d := wire.NewDecoder(r.Data)
	o.asked = d.Uint64()
	if r.Name == transferRequest {
		o.joining.TransferAsked(o.process.sim.now, o.requests, int(r.Rank), r.Data)
	} else {
		o.joining.StateAsked(o.process.sim.now, o.requests, r.Data)
	}
	o.carryOut()
}

// canceled takes that a member does not wait any more.
func (o *orderPart) canceled(c unicast.Caller) {
	for id, s := range o.callers {
		if s.caller == c {
			delete(o.callers, id)
			o.joining.Canceled(id)
			o.after(0, func() { s.reply(nil, errTimeout) })
		}
	}
}

// answer answers a request for the state.
func (o *orderPart) answer(id uint64, b []byte, err error) {
	if s, ok := o.callers[id]; ok {
		delete(o.callers, id)
		s.reply(b, err)
	}
}

// carryOut does what joining decides.
func (o *orderPart) carryOut() {
	for actions := o.joining.Take(); len(actions) > 0; actions = o.joining.Take() {
		for _, action := range actions {
			o.do(action)
		}
	}
	o.arm()
}

// do does one thing that joining decides.
func (o *orderPart) do(action sequencer.Action) {
	switch a := action.(type) {
	case sequencer.Ask:
		o.ask(a)
	case sequencer.Answer:
		o.fall()
		o.answer(a.ID, a.Body, a.Err)
	case sequencer.Capture:
		o.fall()
		o.joining.Captured(o.process.sim.now, a.ID, o.capture(), nil)
	case sequencer.Restore:
		o.restore(a)
	case sequencer.Reset:
		o.process.sim.record(o.process, "begins the order anew")
		o.reset(o.process.sim.checker.epoch(o.process, a.View))
		o.leases.empty(o.epoch)
	case sequencer.HandedOver:
		o.process.sim.after(0, o.process.leave)
	case sequencer.Deliver:
		o.fall()
		for i := range a.Messages {
			o.deliver(&a.Messages[i])
		}
	}
}

// ask asks a member.
func (o *orderPart) ask(a sequencer.Ask) {
	name := map[sequencer.Request]string{
		sequencer.StateRequest: stateRequest, sequencer.MarkRequest: markRequest, sequencer.TransferRequest: transferRequest,
	}[a.Request]
	o.request(a.To, name, a.Body, a.Timeout, func(r unicast.Reply) {
		if o.process.sim.has(knowledgeUnheard) && len(r.Data) == 1 {
			r.Data = nil
		}
		o.joining.Replied(o.process.sim.now, a.Token, sequencer.Reply{Body: r.Data, Err: errorOf(r)})
		o.carryOut()
	})
}

// errorOf returns the error of a reply.
func errorOf(r unicast.Reply) error {
	if r.Err == nil && r.Status != unicast.OK {
		return errRefusedRequest
	}
	return r.Err
}

// capture returns the program's state.
func (o *orderPart) capture() []byte {
	b := bytes.NewBuffer(wire.AppendUint64(wire.AppendUint64(nil, o.epoch.number), o.delivered))
	if err := o.replicas.Snapshot(b); err != nil {
		o.process.sim.checker.fail("%v has no snapshot: %v", o.process, err)
	}
	return b.Bytes()
}

// restore takes the state of another member.
func (o *orderPart) restore(a sequencer.Restore) {
	c := &o.process.sim.checker
	d := wire.NewDecoder(a.State)
	o.reset(c.epochOf(o.process, d.Uint64()))
	o.delivered = d.Uint64()
	err := a.Err
	if err == nil {
		err = o.replicas.Restore(bytes.NewReader(d.Rest()))
	}
	if err != nil {
		c.fail("%v cannot restore the state: %v", o.process, err)
		return
	}
	o.process.sim.record(o.process, "knows the order, from %d on", o.delivered)
	o.process.sim.result.Restored++
}

// deliver applies a message in its place.
func (o *orderPart) deliver(m *sequencer.Message) {
	p := o.process
	p.sim.checker.ordered(o, m)
	o.delivered = m.Number
	client, outcome, ok := o.replicas.Apply(m.Number, m.Topic, m.Data)
	if !ok || client != p.host.client.ID() {
		return
	}
	for _, op := range p.host.client.Complete(&outcome, p.sim.clientID) {
		p.host.complete(o, op, &outcome)
	}
}

// idle reports whether there is nothing that the order waits for.
func (o *orderPart) idle() bool {
	return o.joining.Knows() && o.machine.Pending() == 0 && o.process.host.client.Pending() == 0
}
