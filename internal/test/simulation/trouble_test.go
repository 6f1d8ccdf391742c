package simulation

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/services/session"
	"github.com/pleach-go/pleach/protocol"
)

// begin starts the group, and schedules what its programs and the trouble do.
func (s *Simulation) begin() {
	for i := range s.plan.size {
		s.addHost(i)
	}
	s.beginRoles()
	for i, h := range s.hosts {
		s.start(identityOf(i), h)
	}
	switch s.plan.begin {
	case given:
		s.give(s.processes, func(*process) uint64 { return 0 })
	case created:
		s.give(s.processes[:1], func(p *process) uint64 {
			_, _ = p.load()
			return p.life.next
		})
	default:
		s.give(nil, nil)
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
	if s.options.Cut {
		s.scheduleCut()
	}
	s.scheduleApart()
	if s.options.Strange {
		s.beginStrange()
	}
	if s.options.Services {
		s.beginServices()
	}
	if s.options.Rolling {
		s.beginRolling()
	}
	for range s.plan.troubles {
		s.after(s.between(0, s.plan.end), s.trouble)
	}
}

func identityOf(i int) string { return fmt.Sprintf("m%d", i) }

// give makes the first processes members of a view, and boots the others.
func (s *Simulation) give(first []*process, nonce func(*process) uint64) {
	view := membership.View{Number: 1, Slots: protocol.Rank(len(first)), Version: newVersion}
	var members []membership.Member
	for i, p := range first {
		m := membership.Member{
			Rank: protocol.Rank(i), Identity: p.identity, Address: p.address,
			Incarnation: member.FirstIncarnation, Version: p.version, Nonce: nonce(p),
		}
		view.Version = min(view.Version, m.Version)
		members = append(members, m)
	}
	for i, p := range first {
		p.observer = p.observer && view.Version >= membership.ObserverVersion
		members[i].Observer = p.observer
	}
	view.Members = membership.MembersOf(members...)
	for i, p := range s.processes {
		s.after(s.between(0, 20*millisecond), func() {
			p.do(func() {
				if i >= len(first) {
					p.boot()
					return
				}
				p.enter(&lifecycle.Membership{Self: members[i], View: view})
				s.begun = true
			})
		})
	}
	s.begun = first == nil
}

// addHost adds a host to the network.
func (s *Simulation) addHost(i int) *host {
	h := &host{index: i}
	if s.options.Services {
		h.clock, h.client = s.drawClock(), session.NewClient[*operation](s.clientID())
	}
	s.hosts = append(s.hosts, h)
	for _, other := range s.hosts {
		for len(other.deaf) < len(s.hosts) {
			other.deaf = append(other.deaf, false)
		}
	}
	return h
}

// hostAt returns the host that has, or had, an address.
func (s *Simulation) hostAt(address string) *host {
	h := s.addresses[address]
	if h == nil {
		panic("simulation: no host " + address)
	}
	return h
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
	if s.plan.durable && s.rng.IntN(3) == 0 {
		s.cutPower(length)
		return
	}
	switch {
	case kind <= 2:
		s.partition(length, s.rng.IntN(2) == 0)
	case kind == 3:
		s.deafen(h, s.hosts[s.rng.IntN(len(s.hosts))], length)
	case p == nil || p.state != running && !s.plan.durable:
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
		q.boot()
	case p.state != running:
	case kind == 10:
		p.leave()
		if s.plan.durable && s.rng.IntN(2) == 0 {
			s.restartAfter(length, p)
		}
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

// leave has a member leave. With a disk, it ends without the others after a while, as
// Group.Close does, and keeps its place.
func (p *process) leave() {
	s := p.sim
	if p.state != running || p.leaving {
		return
	}
	s.record(p, "leaves")
	p.leaving = true
	p.do(func() { p.step(func() { p.machine.Leave(s.now) }) })
	switch {
	case s.plan.durable:
		s.after(closeTimeout, func() {
			p.crash()
			if s.calm {
				s.restart(p)
			}
		})
	case s.options.Observers: // the last voter cannot leave
		s.after(closeTimeout, p.crash)
	}
}

// closeTimeout bounds how long a member waits for the others to let it go.
const closeTimeout = second

// cutPower ends all processes, or all but a few, or has one crash and all others leave. They
// come back.
func (s *Simulation) cutPower(length protocol.Time) {
	way := s.rng.IntN(4)
	leave, spares := way == 0, way == 1
	s.timeline.note(s.now, []string{
		"all leave but one, which crashes", "the power goes but at a few hosts",
		"the power goes", "the power goes",
	}[way])
	order := s.rng.Perm(len(s.hosts))
	for i, k := range order {
		p := s.hosts[k].process
		switch {
		case p == nil || spares && i <= order[0]%3:
			continue
		case leave && i > 0:
			p.leave()
		default:
			p.crash()
			if s.rng.IntN(3) == 0 {
				p.host.disk.following = nil
			}
		}
		if s.rng.IntN(4) > 0 {
			s.restartAfter(s.between(0, length), p)
		}
	}
}

// partition cuts a few hosts off from the others, in one direction or in both.
func (s *Simulation) partition(length protocol.Time, both bool) (inside, outside []*host) {
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
	return inside, outside
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
	s.timeline.note(s.now, "the trouble is over")
	for _, h := range s.hosts {
		clear(h.deaf)
		if p := h.process; p != nil {
			p.resume()
			p.program.deaf = 0
			if p.state == running {
				p.program.read()
			}
		}
	}
	s.endStrange()
	s.rouse()
	if s.plan.durable || s.plan.begin == founded {
		s.startAll()
	}
}

// startAll starts a process on each host that has none.
func (s *Simulation) startAll() {
	for _, p := range slices.Clone(s.processes) {
		if p.host.process == nil {
			s.restart(p)
		}
	}
}
