package simulation

// A member goes on talking to its seeds, as in the root package: it tells them that there is
// a group, and asks them whether it is still a member when it has no quorum.

import (
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

const (
	seedInterval = 2 * second
	seedTimeout  = 2 * second
)

// keepSeeds turns to one seed after the other while this process is a member.
func (p *process) keepSeeds() {
	turn := 0
	var next func()
	next = func() {
		if p.state != running {
			return
		}
		p.sim.after(seedInterval, func() { p.do(next) })
		p.turnToSeed(turn)
		turn++
	}
	p.sim.after(seedInterval, func() { p.do(next) })
}

// turnToSeed tells a seed of the group, or asks it. Seeds are names of hosts, whose addresses
// are looked up each time.
func (p *process) turnToSeed(turn int) {
	s, v := p.sim, p.machine.View()
	seeds := s.seeds(p)
	state, _ := p.machine.State()
	lost, there := state == membership.NoQuorum, make(map[string]bool)
	for _, m := range v.Members.All() {
		if there[m.Address] = true; lost && m.Rank != p.self.Rank {
			seeds = append(seeds[:len(seeds):len(seeds)], m.Address)
		}
	}
	if len(seeds) == 0 {
		return
	}
	seed := seeds[turn%len(seeds)]
	switch {
	case lost:
		q := control.Question{From: control.Contact{ID: p.identity, Address: p.address}}
		s.request(p, seed, control.Introduce{Question: q}, seedTimeout, p.introduced)
	case s.plan.begin == founded && !there[seed]:
		self := founding.Candidate{ID: p.identity, Nonce: p.self.Nonce, Address: p.address}
		r := control.Founding{Request: founding.Request{From: self, Group: p.address}}
		s.request(p, seed, r, seedTimeout, func(lifecycle.Reply) {})
	}
}

// introduced takes the latest view that a seed knows. If that is later, this member learns
// it, or ends because the group has gone on without it.
func (p *process) introduced(r lifecycle.Reply) {
	if r.Err != nil || p.state != running {
		return
	}
	i, err := control.DecodeIntroduction(r.Body)
	if err != nil {
		return
	}
	for _, c := range append(i.Others, i.Contact) {
		p.meet(c)
	}
	if i.View == nil {
		return
	}
	switch behind, removed := p.machine.Behind(i.View); {
	case removed && i.Role == control.Candidate: // what it was in may be another group of this name
	case removed:
		p.removed(i.View.Number, i.View.Successor(&p.self))
	case behind:
		p.learn(i.Decisions)
	}
}
