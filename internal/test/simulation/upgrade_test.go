package simulation

import (
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A group is upgraded while the trouble lasts: processes of two protocol versions begin it,
// a process that starts again may speak the higher one, and an operator tries to raise the
// version again and again. The operator evicts members, too.

// The versions of processes. Groups that are not upgraded have the new one, as users run it.
const (
	oldVersion = wire.MinVersion
	newVersion = wire.Version
)

// drawVersion draws that of a process that starts.
func (s *Simulation) drawVersion() uint16 {
	if !s.options.Upgrade {
		return newVersion
	}
	return oldVersion + uint16(s.rng.IntN(newVersion-oldVersion+1))
}

// upgrade schedules the operator.
func (s *Simulation) upgrade() {
	for range s.rng.IntN(6) {
		s.after(s.between(0, s.plan.end), func() {
			if p := s.someProcess(); p != nil {
				p.do(func() { p.raise(newVersion) })
			}
		})
	}
	rng := rand.New(rand.NewPCG(s.result.Seed, evictions))
	for range rng.IntN(4) {
		at, asked, evicted := protocol.Time(rng.Int64N(int64(s.plan.end)+1)), rng.IntN(len(s.hosts)), rng.IntN(len(s.hosts))
		s.after(at, func() { s.evict(asked, evicted) })
	}
}

// evictions is the stream of random numbers of evictions: without them, a seed has the same plan.
const evictions = 6

// evict asks the member of one host to evict that of another one. It may refuse. Revocations are
// not in the plans: one member alone that shuns another one may leave a group without a quorum for
// good.
func (s *Simulation) evict(asked, evicted int) {
	p, q := s.hosts[asked].process, s.hosts[evicted].process
	if p == nil || q == nil || p == q || q.state != running {
		return
	}
	p.do(func() {
		if p.state == running {
			s.record(p, "is to evict %s", q.identity)
			p.step(func() { _ = p.machine.Evict(s.now, q.self.Rank, q.self.Incarnation, membership.OperatorEvicted) })
		}
	})
}

// raise asks a member to raise the version. It may refuse.
func (p *process) raise(version uint16) {
	if p.state == running {
		p.sim.record(p, "is to raise the version to %d", version)
		p.step(func() { _ = p.machine.RaiseVersion(p.sim.now, version) })
	}
}

// finishUpgrade raises the version after the trouble to the highest that all members speak.
func (s *Simulation) finishUpgrade() {
	members := s.belonging()
	if s.checker.err != nil || s.stuck() || len(members) == 0 {
		return
	}
	lowest := uint16(newVersion)
	for _, p := range members {
		lowest = min(lowest, p.self.Version)
	}
	members[s.rng.IntN(len(members))].raise(lowest)
	if !s.runUntil(s.now+convergeTime/6, func() bool { return s.converged() && s.newestView().Version == lowest }) {
		s.checker.fail("the protocol version is not %d after %d s:%s", lowest, convergeTime/6/second, s.describe())
	}
}
