package simulation

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// replicated is the state of a program: what its messages add up to. Joiners get it from other
// members by a [lifecycle.Replica], driven as the root package does.
type replicated struct {
	process *process
	machine *lifecycle.Replica
	direct  *unicast.Machine
	sum     uint64 // of the hashes of all messages
	lossy   bool   // it was told that messages are lost
}

// beginState begins with the first view of a process.
func (p *process) beginState(b *lifecycle.Membership) {
	p.replicated = nil
	if !p.sim.options.State {
		return
	}
	r := &replicated{process: p, machine: lifecycle.NewReplica(b.Self, &b.View)}
	r.direct = unicast.New(unicast.Config{
		Self: p.self.Rank, View: b.View, Window: 1 << 16, MaxRequests: 1,
		Post: func(to protocol.Rank, head, body []byte, released func()) {
			if err := p.machine.SendDirect(to, head, body, released); err != nil {
				p.sim.checker.fail("%v cannot send to rank %d: %v", p, to, err)
			}
		},
		State: r.received,
	})
	p.replicated = r
}

func (r *replicated) installed(v *membership.View) {
	if r == nil {
		return
	}
	r.direct.Install(v)
	r.machine.Installed(v)
	if r.process.sim.has(stateTakenEarly) {
		r.provide(v.Number)
	}
}

// received takes what a member says about the state.
func (r *replicated) received(from protocol.Rank, view uint64, s unicast.Status, data []byte) {
	chosen, err := r.machine.Received(from, view, s, data)
	if err != nil {
		r.process.sim.checker.fail("%v gets no state: %v", r.process, err)
	}
	if chosen != nil && !r.process.sim.has(choiceForgotten) {
		r.process.sim.result.Elections++
		r.direct.SendState(chosen.Rank, chosen.Incarnation, view, unicast.Chosen, nil)
	}
}

// step goes on after the machine of the member has made a step.
func (r *replicated) step() {
	if r == nil {
		return
	}
	p := r.process
	for m, ok := p.machine.DeliverDirect(); ok; m, ok = p.machine.DeliverDirect() {
		if err := r.direct.Receive(m.From, m.Data); err != nil {
			p.sim.checker.fail("%v refuses a message of rank %d: %v", p, m.From, err)
		}
	}
	if to, view, offer := r.machine.StateOffer(); to != nil {
		r.direct.SendState(to.Rank, to.Incarnation, view, unicast.Offered, offer)
	}
	view := r.machine.OfferView()
	if to, offer := r.machine.Offer(view, uint64(p.id)); to != nil {
		r.direct.SendState(to.Rank, to.Incarnation, view, unicast.Offered, offer)
	}
}

// ready reports whether the program has the state, which it restores if it has arrived.
func (r *replicated) ready() bool {
	if r == nil || !r.machine.Lacking() {
		return true
	}
	t := r.machine.Arrived()
	if t == nil {
		return false
	}
	if !t.Own {
		r.sum, r.lossy = binary.BigEndian.Uint64(t.Data), t.Data[8] > 0
	}
	r.machine.Restored()
	r.process.sim.result.States++
	r.process.machine.SetSynced(r.process.sim.now)
	return true
}

// take takes a message: it is part of the state, or says where a view begins.
func (r *replicated) take(m *stream.Message) {
	switch {
	case r == nil, r.machine.Lacking(): // it has ended before it had the state
	case m.Begins:
		r.process.sim.checker.state(r, m.View)
		r.provide(m.View)
	case m.View < r.machine.Since(): // the state has it
	case m.Lost > 0:
		r.lossy = true
	default:
		h := fnv.New64a()
		_, _ = h.Write(append(binary.BigEndian.AppendUint64(nil, uint64(m.Root)), m.Data...))
		r.sum += h.Sum64()
	}
}

// provide sends the state where a view begins to its members that this one gives it to.
func (r *replicated) provide(view uint64) {
	data := append(binary.BigEndian.AppendUint64(nil, r.sum), 0)
	if r.lossy {
		data[8] = 1
	}
	for _, to := range r.machine.Begins(view) {
		number := view
		if r.process.sim.has(stateLabeledLater) {
			number++
		}
		r.direct.SendState(to.Rank, to.Incarnation, number, unicast.OK, data)
	}
}

// state checks the state of a program where a view begins: all members have the same.
func (c *checker) state(r *replicated, view uint64) {
	g := r.process.group
	if r.lossy || view < r.machine.Since() {
		return
	}
	if g.states == nil {
		g.states = make(map[uint64]uint64)
	}
	first, known := g.states[view]
	if !known {
		g.states[view] = r.sum
	} else if first != r.sum {
		c.fail("%v has another state than others where view %d begins", r.process, view)
	}
}
