package fleetsimulation

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// chooser is a [backbone.Machine], or a wrapper with a bug.
type chooser interface {
	SetZone(now backbone.Time, z backbone.Zone)
	SetSeeds(zones []string)
	Found(now backbone.Time, round uint64, f backbone.Found)
	Entered(now backbone.Time, address string)
	Failed(now backbone.Time)
	Installed(now backbone.Time, v backbone.View)
	Left(now backbone.Time)
	Next(now backbone.Time) backbone.Action
	Deadline() backbone.Time
}

// delegate is what package fleet does for a member that may be a delegate.
type delegate struct {
	choice     chooser    // nil before the member is ready
	ports      int        // addresses that it has had in backbones
	taken      int        // the last one of them that another process has
	announced  string     // its address, as members of its zone see it
	announceAt relay.Time // when the last change of that happens
	metaAt     relay.Time // when the last addresses of others are told
	wake       relay.Time
	departed   int // times that it has left a backbone since the trouble was over
}

// startDelegate has the machine of a member begin.
func (m *member) startDelegate() {
	m.choice = backbone.New(backbone.Config{Zone: m.zone.name, Delegates: maxDelegates})
	if m.sim.options.Chooser != nil {
		m.choice = m.sim.options.Chooser(m.choice)
	}
	told := m.sim.plan.toldTo(m.zone.name)
	m.wake = never
	m.choose(func(relay.Time) { m.choice.SetSeeds(told) })
	m.zone.announceMeta()
}

// choose has the machine take an input, and does what follows.
func (m *member) choose(input func(relay.Time)) {
	if m.dead || m.choice == nil {
		return
	}
	input(m.sim.now)
	for a := m.choice.Next(m.sim.now); a != nil; a = m.choice.Next(m.sim.now) {
		m.carryOut(a)
	}
	d := m.choice.Deadline()
	if d >= m.wake {
		return
	}
	m.wake = d
	m.sim.after(max(d-m.sim.now, microsecond), func() {
		if m.wake == d {
			m.wake = never
			m.choose(func(relay.Time) {})
		}
	})
}

// carryOut does what the machine has decided.
func (m *member) carryOut(action backbone.Action) {
	s := m.sim
	switch a := action.(type) {
	case backbone.AskZone:
		m.findIn(a)
	case backbone.AskDelegates:
		m.findAt(a.Round, a.Addresses, a.Timeout, backbone.Found{})
	case backbone.Join:
		m.join(a.Seeds, m.addressFor(a.SameAddress), s.now+a.Timeout)
	case backbone.Create:
		address := m.addressFor(a.SameAddress)
		s.after(s.between(millisecond, 100*millisecond), func() { m.enterGroup(&group{sim: s}, address) })
	case backbone.Leave:
		if s.calm {
			m.departed++
		}
		if m.session != nil {
			s.record(m.id, "leaves the backbone")
			m.session.leave()
		}
	case backbone.Announce:
		m.announceAt = max(m.announceAt, s.now+s.between(millisecond, 100*millisecond))
		s.after(m.announceAt-s.now, func() {
			m.announced = a.Address
			m.zone.announceMeta()
		})
	}
}

// addressFor returns the last address of a delegate, or a new one.
func (m *member) addressFor(same bool) string {
	if !same || m.ports == 0 {
		m.ports++
	} else if m.sim.rng.IntN(30) == 0 {
		m.taken = m.ports
	}
	return fmt.Sprintf("%s:%d:%d", m.id, m.began, m.ports)
}

// join joins the backbone of a seed as soon as that lets it, and gives up at a time.
func (m *member) join(seeds []string, address string, until relay.Time) {
	s := m.sim
	s.after(s.between(10*millisecond, 500*millisecond), func() {
		i := slices.IndexFunc(seeds, func(a string) bool {
			o := s.at(a)
			return o != nil && o.member.zone.side == m.zone.side && slices.Contains(o.group.sessions, o) &&
				o.group.quorum(o.group.partOf(o))
		})
		switch gone := !slices.ContainsFunc(seeds, func(a string) bool { return s.at(a) != nil }); {
		case m.dead:
		case i >= 0:
			m.enterGroup(s.at(seeds[i]).group, address)
		case gone || s.now >= until:
			m.choose(m.choice.Failed)
		default:
			m.join(seeds, address, until)
		}
	})
}

// at returns the live session at an address, or nil.
func (s *Simulation) at(address string) *session {
	for _, m := range s.members() {
		if m.session != nil && m.session.address == address {
			return m.session
		}
	}
	return nil
}

// enterGroup makes a delegate a member of a backbone, unless another process has its address. Some
// are members for the others only, since the reply is lost.
func (m *member) enterGroup(g *group, address string) {
	s := m.sim
	if m.dead {
		return
	}
	if m.taken == m.ports {
		m.choose(m.choice.Failed)
		return
	}
	o := g.admit(m, address)
	if len(g.sessions) > 1 && s.rng.IntN(30) == 0 {
		o.ended = true
		g.announce()
		g.reviewAfter(millisecond, 3*second)
		s.after(s.between(second, 15*second), func() { m.choose(m.choice.Failed) })
		return
	}
	m.session = o
	s.record(m.id, "enters a backbone, rank %d of %d", o.rank, len(g.sessions))
	m.choose(func(now relay.Time) { m.choice.Entered(now, address) })
	g.announce()
}

// announceMeta tells the members of a zone who of them announces which address.
func (z *zone) announceMeta() {
	order := z.byAge()
	for i, m := range order {
		v := backbone.Zone{Index: i, Lead: order[0].announced}
		for _, o := range order {
			if o != m && o.announced != "" {
				v.Others = append(v.Others, o.announced)
			}
		}
		m.metaAt = max(m.metaAt, z.sim.now+z.sim.between(0, 20*millisecond))
		z.sim.after(m.metaAt-z.sim.now, func() { m.choose(func(now relay.Time) { m.choice.SetZone(now, v) }) })
	}
}

// lostQuestion draws whether a process does not answer in time.
func (s *Simulation) lostQuestion() bool { return s.rng.IntN(30) == 0 }

// findIn asks a zone for the backbone of its delegates.
func (m *member) findIn(q backbone.AskZone) {
	s := m.sim
	i := slices.IndexFunc(s.zones, func(z *zone) bool { return z.name == q.Zone })
	z, f := s.zones[i], backbone.Found{Zone: q.Zone}
	seeded := slices.Contains(s.plan.toldTo(m.zone.name), q.Zone)
	wait := relay.Time(0)
	switch live := len(z.alive()) > 0; {
	case seeded && live && z.side == m.zone.side && !s.lostQuestion():
		wait, f.Reachable = s.between(s.plan.far, 3*s.plan.far+1), true
	case seeded && live:
		wait = q.Timeout
	}
	s.after(wait, func() {
		asked := q.Known
		if f.Reachable {
			var announced []string
			for _, o := range z.view {
				if o.announced != "" {
					announced = append(announced, o.announced)
				}
			}
			f.Announced = len(announced) > 0
			if f.Announced {
				asked = announced
			}
		}
		m.findAt(q.Round, asked, q.Timeout, f)
	})
}

// findAt asks delegates one after the other for their backbone. The first that answers decides.
func (m *member) findAt(round uint64, addresses []string, timeout relay.Time, f backbone.Found) {
	const stagger = 250 * millisecond
	s := m.sim
	f.Asked = addresses
	var wait, last relay.Time
	for _, a := range addresses {
		o := s.at(a)
		silent := o != nil && o.member.zone.side != m.zone.side || s.lostQuestion()
		switch {
		case o != nil && !silent:
			at := wait + s.between(s.plan.far, 3*s.plan.far+1)
			s.after(at, func() {
				if !o.ended && !o.member.dead {
					f.View = o.told
				}
				m.choose(func(now relay.Time) { m.choice.Found(now, round, f) })
			})
			return
		case silent:
			wait, last = wait+stagger, timeout
		default:
			wait += s.between(s.plan.far, 3*s.plan.far+1)
		}
	}
	s.after(max(wait, last), func() { m.choose(func(now relay.Time) { m.choice.Found(now, round, f) }) })
}
