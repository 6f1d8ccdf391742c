package simulation

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/protocol"
)

// Times of shards, and their number.
const (
	partitionCount = 8
	shardLease     = 300 * millisecond
	shardHandoff   = 200 * millisecond
	shardPeriod    = shardLease / 5
)

var errNoMajority = errors.New("no majority")

// shardPart is a process's part in the shards, as package shard drives it.
type shardPart struct {
	*services
	machine *handoff.Machine
	outbox  []handoff.Message
	sending bool
	view    uint64 // that the machine knows
	armed   protocol.Time
	polling []poller // those that wait for the poll
	next    []poller // those that wait for the next one
}

// poller is one that asks whether a majority is in a view.
type poller struct {
	view uint64
	done func(error)
}

func (h *shardPart) begin(s *services) {
	c := handoff.Config{
		Partitions: partitionCount, Lease: shardLease, Handoff: shardHandoff,
		Floor: s.process.floor(&s.process.host.shardMark),
	}
	*h = shardPart{services: s, machine: handoff.New(c), armed: protocol.Never}
	h.after(0, h.viewed)
	h.after(shardPeriod, h.renew)
}

// viewed tells the machine of the view. Without a quorum, the process serves nothing.
func (h *shardPart) viewed() {
	p := h.process
	v := p.machine.View()
	if m, ok := v.Member(p.self.Rank); !ok || m.Incarnation != p.self.Incarnation || !h.active() {
		h.machine.Suspend()
		h.step()
		return
	}
	var members []handoff.Member
	for _, m := range v.Members.All() {
		members = append(members, handoff.Member{
			Process: handoff.Process{Rank: int(m.Rank), Incarnation: m.Incarnation},
			ID:      m.Identity, Weight: 1,
		})
	}
	fresh := v.Number != h.view
	h.view = v.Number
	h.machine.Install(p.sim.now, handoff.Process{Rank: int(p.self.Rank), Incarnation: p.self.Incarnation},
		v.Number, members)
	h.step()
	if fresh {
		h.confirm()
	}
}

// step has time pass in the machine, and does what it wants.
func (h *shardPart) step() {
	s := h.process.sim
	cover(&h.process.host.shardMark, h.machine.Ceiling())
	h.machine.Tick(s.now)
	a := h.machine.Take()
	for _, item := range a.Begin {
		s.checker.owns(h, item)
	}
	h.outbox = append(h.outbox, a.Send...)
	for _, item := range a.Drain {
		h.after(s.between(0, shardHandoff*5/4), func() {
			h.machine.Drained(s.now, item)
			h.step()
		})
	}
	due := min(h.machine.Next(), s.now+shardPeriod)
	due = max(due, s.now+1)
	if due < h.armed {
		h.armed = due
		h.after(due-s.now, func() {
			if h.armed == due {
				h.armed = protocol.Never
				h.step()
			}
		})
	}
}

// send broadcasts what the machine has to say.
func (h *shardPart) send() {
	if h.sending || len(h.outbox) == 0 {
		return
	}
	h.sending = true
	h.process.program.broadcast(append([]byte{shardService}, h.outbox[0].Encode()...), func() { h.sending = false })
	h.outbox = h.outbox[1:]
}

// receive takes what another member has broadcast.
func (h *shardPart) receive(from int, data []byte) {
	m, err := handoff.Decode(from, partitionCount, data)
	if err != nil {
		h.process.sim.checker.fail("%v gets %x of rank %d: %v", h.process, data, from, err)
		return
	}
	if h.process.sim.has(servesBeforeHandoff) && m.Kind == handoff.Report {
		m.Kind = handoff.Released
	}
	h.machine.Receive(h.process.sim.now, m)
	h.step()
}

// renew asks for a majority, and for reports that are missing, again and again.
func (h *shardPart) renew() {
	h.after(shardPeriod, h.renew)
	if h.view == 0 {
		return
	}
	h.confirm()
	for _, p := range h.machine.AskTerms() {
		h.request(p.Rank, termsRequest, encodeView(h.view), shardPeriod, func(r unicast.Reply) {
			if errorOf(r) == nil {
				h.receive(p.Rank, r.Data)
			}
		})
	}
	for _, p := range h.machine.Missing() {
		h.request(p.Rank, reportRequest, encodeView(h.view), shardPeriod, func(r unicast.Reply) {
			if errorOf(r) == nil {
				h.receive(p.Rank, r.Data)
			}
		})
	}
}

// confirm tells the machine if a majority is in the view: the leader asks it for all.
func (h *shardPart) confirm() {
	s, view := h.process.sim, h.view
	confirm := func(sent protocol.Time) {
		h.machine.Confirm(s.now, sent, view)
		h.step()
		s.checker.serves(h)
	}
	alone := func() {
		sent := s.now
		h.poll(view, func(err error) {
			if err == nil {
				confirm(sent)
			}
		})
	}
	v, sent := h.process.machine.View(), s.now
	if leader := v.Leader().Rank; leader != h.process.self.Rank {
		h.request(int(leader), majorityRequest, encodeView(view), shardPeriod, func(r unicast.Reply) {
			if errorOf(r) != nil {
				alone()
			} else {
				confirm(sent)
			}
		})
		return
	}
	alone()
}

// vouch says that this process is in a view, and knows of no later one.
func (h *shardPart) vouch(view uint64) error {
	if h.process.machine.View().Number != view || !h.active() || !h.machine.Vouches(h.process.sim.now, view) {
		return errRefusedRequest
	}
	return nil
}

// report returns what this process holds in a view.
func (h *shardPart) report(view uint64) ([]byte, error) {
	m := h.machine.Report()
	if m.View != view {
		return nil, errRefusedRequest
	}
	return m.Encode(), nil
}

// terms returns the terms of this process in a view.
func (h *shardPart) terms(view uint64) ([]byte, error) {
	m := h.machine.Terms()
	if m.View != view {
		return nil, errRefusedRequest
	}
	return m.Encode(), nil
}

// poll asks all members whether they are in a view. Those that ask while members are asked wait
// for the next poll.
func (h *shardPart) poll(view uint64, done func(error)) {
	h.next = append(h.next, poller{view, done})
	if h.polling == nil {
		h.pollNext(view)
	}
}

// pollNext asks for all that wait.
func (h *shardPart) pollNext(view uint64) {
	h.polling, h.next = h.next, nil
	end := func(err error) {
		waiting := h.polling
		h.polling = nil
		for _, w := range waiting {
			if w.view != view {
				w.done(errRefusedRequest)
			} else {
				w.done(err)
			}
		}
		if len(h.next) > 0 && h.polling == nil {
			h.pollNext(h.view)
		}
	}
	if view != h.view || h.vouch(view) != nil {
		end(errRefusedRequest)
		return
	}
	members, count := h.members()
	voters := members[:count]
	in, left := 0, count
	if slices.ContainsFunc(voters, func(m sequencer.Member) bool { return m.Rank == int(h.process.self.Rank) }) {
		in, left = 1, count-1
	}
	if 2*in > len(voters) {
		end(nil)
		return
	}
	over := false
	for _, m := range voters {
		if m.Rank == int(h.process.self.Rank) {
			continue
		}
		h.request(m.Rank, vouchRequest, encodeView(view), 2*shardPeriod, func(r unicast.Reply) {
			left--
			if errorOf(r) == nil {
				in++
			}
			switch {
			case over:
			case 2*in > len(voters):
				over = true
				end(nil)
			case left == 0:
				over = true
				end(errNoMajority)
			}
		})
	}
}

func encodeView(view uint64) []byte { return binary.AppendUvarint(nil, view) }

func decodeView(b []byte) uint64 {
	view, _ := binary.Uvarint(b)
	return view
}

// owned reports whether each partition has one owner, that of the map.
func (s *Simulation) owned() bool {
	for partition := range partitionCount {
		owners := 0
		for _, p := range s.belonging() {
			if p.state != running {
				return false
			}
			if _, ok := p.services.shards.machine.Serves(s.now, partition); ok {
				owners++
				target, _ := p.services.shards.machine.Target(partition)
				if target.Rank != int(p.self.Rank) {
					return false
				}
			}
		}
		if owners != 1 {
			return false
		}
	}
	return true
}
