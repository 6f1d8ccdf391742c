package simulation

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// begin starts the group, and schedules what its programs and the trouble do.
func (s *Simulation) begin() {
	for i := range s.plan.size {
		s.addHost(i)
	}
	view := membership.View{Number: 1, Slots: 1}
	if s.plan.together {
		view.Slots = protocol.Rank(s.plan.size)
	}
	var members []membership.Member
	for i, h := range s.hosts {
		p := s.start(fmt.Sprintf("m%d", i), h)
		if i < int(view.Slots) {
			m := membership.Member{Rank: protocol.Rank(i), Identity: p.identity, Address: h.address, Incarnation: member.FirstIncarnation, Version: p.version}
			if !s.plan.together {
				m.Nonce = p.nonce
			}
			if i == 0 || m.Version < view.Version {
				view.Version = m.Version
			}
			members = append(members, m)
		}
	}
	view.Members = membership.MembersOf(members...)
	for i, p := range s.processes {
		s.after(s.between(0, 20*millisecond), func() {
			if i < len(members) {
				p.enter(members[i], view, nil, membership.Decisions{})
			} else {
				p.join()
			}
		})
	}
	for range s.plan.messages {
		s.after(s.between(0, s.plan.end), s.broadcastSomething)
	}
	for range s.plan.unicasts {
		s.after(s.between(0, s.plan.end), s.sendSomething)
	}
	for range s.plan.polls {
		s.after(s.between(0, s.plan.end), func() {
			if p := s.someProcess(); p != nil && p.program.poll.stage == noPoll {
				p.do(func() {
					p.program.poll.stage = pollWanted
					p.step(func() {})
				})
			}
		})
	}
	if s.options.Upgrade {
		s.upgrade()
	}
	for range s.plan.troubles {
		s.after(s.between(0, s.plan.end), s.trouble)
	}
}

// addHost adds a host to the network.
func (s *Simulation) addHost(i int) *host {
	h := &host{index: i, address: fmt.Sprintf("h%d:1", i)}
	s.hosts = append(s.hosts, h)
	for _, other := range s.hosts {
		for len(other.deaf) < len(s.hosts) {
			other.deaf = append(other.deaf, false)
		}
	}
	return h
}

// hostAt returns the host of an address. There is one for each address in a view.
func (s *Simulation) hostAt(address string) *host {
	for _, h := range s.hosts {
		if h.address == address {
			return h
		}
	}
	panic("simulation: no host " + address)
}

// someProcess draws a member.
func (s *Simulation) someProcess() *process {
	if p := s.hosts[s.rng.IntN(len(s.hosts))].process; p != nil && p.state == running {
		return p
	}
	return nil
}

// broadcastSomething makes a program broadcast a message, or a burst.
func (s *Simulation) broadcastSomething() {
	p, count, size := s.someProcess(), 1, 1+s.rng.IntN(s.plan.longest)
	if s.rng.IntN(4) == 0 {
		count = 1 + s.rng.IntN(20)
	}
	if s.rng.IntN(3) == 0 {
		size = 1 + s.rng.IntN(8)
	}
	if p == nil {
		return
	}
	p.do(func() {
		for range count {
			p.program.say(size)
		}
	})
}

// trouble is one thing that goes wrong. What it begins ends with endTrouble at the latest.
func (s *Simulation) trouble() {
	h := s.hosts[s.rng.IntN(len(s.hosts))]
	p, length := h.process, s.between(10*millisecond, 3*second)
	if s.rng.IntN(3) == 0 {
		length = s.between(millisecond, 200*millisecond)
	}
	kind := s.rng.IntN(15)
	switch {
	case kind <= 2:
		s.partition(length, s.rng.IntN(2) == 0)
	case kind == 3:
		s.deafen(h, s.hosts[s.rng.IntN(len(s.hosts))], length)
	case p == nil || p.state != running:
	case kind <= 5:
		p.pause(length)
	case kind <= 7:
		p.crash()
		if s.rng.IntN(3) > 0 {
			s.restartAfter(length/4, p)
		}
	case kind == 8:
		h.off = true
		p.crash()
		s.restartAfter(length, p)
	case kind == 9 && s.plan.doubles:
		s.record(p, "has a double")
		q := s.start(p.identity, s.addHost(len(s.hosts)))
		q.replace = s.rng.IntN(2) == 0
		q.join()
	case kind == 10:
		s.record(p, "leaves")
		p.leaving = true
		p.do(func() { p.step(func() { p.machine.Leave(s.now) }) })
	case kind == 11:
		for _, c := range s.conns {
			if c.ends[0].process == p && c.ends[0].open && s.rng.IntN(2) == 0 {
				s.after(0, func() { s.shut(c, 0) })
			}
		}
	default:
		s.record(p, "receives nothing for %d ms", length/millisecond)
		p.program.deaf = s.now + length
	}
}

// partition cuts a few hosts off from the others, in one direction or in both.
func (s *Simulation) partition(length protocol.Time, both bool) {
	var inside, outside []*host
	few := 1 + s.rng.IntN(max(len(s.hosts)/2, 1))
	for i, k := range s.rng.Perm(len(s.hosts)) {
		if i < few {
			inside = append(inside, s.hosts[k])
		} else {
			outside = append(outside, s.hosts[k])
		}
	}
	for _, a := range inside {
		for _, b := range outside {
			s.deafen(a, b, length)
			if both {
				s.deafen(b, a, length)
			}
		}
	}
}

// deafen keeps the packets of a host from another for a while.
func (s *Simulation) deafen(a, from *host, length protocol.Time) {
	if a == from || a.deaf[from.index] {
		return
	}
	a.deaf[from.index] = true
	if p := a.process; p != nil {
		s.record(p, "hears nothing of host %d for %d ms", from.index, length/millisecond)
	}
	s.after(length, func() {
		a.deaf[from.index] = false
		s.rouse()
	})
}

// endTrouble heals the network and resumes what is paused.
func (s *Simulation) endTrouble() {
	s.calm = true
	for _, h := range s.hosts {
		clear(h.deaf)
		if p := h.process; p != nil {
			p.resume()
			if p.program.deaf = 0; p.state == running {
				p.program.read()
			}
		}
	}
	s.rouse()
}
