package simulation

// A member without a quorum asks one host after the other whether the group has gone on
// without it, as the root package asks its seeds.

import "github.com/pleach-go/pleach/internal/membership"

const seedInterval = 2 * second

// askSeeds asks the next host while this process is a member.
func (p *process) askSeeds() {
	s := p.sim
	s.after(seedInterval, func() {
		p.do(func() {
			if p.state != running {
				return
			}
			if p.machine.Stuck() {
				p.askSeed(p.nextSeed())
			}
			p.askSeeds()
		})
	})
}

// askSeed requests the view of the process on a host.
func (p *process) askSeed(to *host) {
	s := p.sim
	s.after(s.latency(), func() {
		asked := to.process
		if !p.host.reaches(to) || asked == nil || asked.state != running {
			return
		}
		asked.do(func() {
			v := asked.machine.View()
			s.after(s.latency(), func() {
				if to.reaches(p.host) {
					p.do(func() { p.answeredView(&v, asked) })
				}
			})
		})
	})
}

// nextSeed returns the host that this process asks next.
func (p *process) nextSeed() *host {
	hosts := p.sim.hosts
	to := hosts[p.seed%len(hosts)]
	if p.seed++; to == p.host {
		to = hosts[p.seed%len(hosts)]
		p.seed++
	}
	return to
}

// answeredView takes the view of a seed.
func (p *process) answeredView(v *membership.View, of *process) {
	if p.state != running {
		return
	}
	switch behind, removed := p.machine.Behind(v); {
	case removed:
		p.step(func() { p.machine.Removed(p.sim.now, v.Number, v.Successor(&p.self)) })
	case behind && of.state == running:
		of.do(func() { of.pass(p) })
	}
}
