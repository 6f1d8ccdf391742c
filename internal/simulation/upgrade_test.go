package simulation

// A group is upgraded while the trouble lasts: processes of two protocol versions begin it,
// a process that starts again may speak the higher one, and an operator tries to raise the
// version again and again.

// The versions of processes. Groups that are not upgraded have the new one, as users run it.
const (
	oldVersion = 4
	newVersion = 5
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
