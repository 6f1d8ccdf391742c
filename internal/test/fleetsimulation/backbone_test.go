package fleetsimulation

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// group is a backbone: a group of delegates. There are several after a partition. Its members decide
// views while those of the last view that reach each other are a quorum of it.
type group struct {
	sim         *Simulation
	sessions    []*session // the last view
	incarnation uint64
}

// session is one membership in a backbone.
type session struct {
	member      *member
	group       *group
	address     string
	rank        int
	incarnation uint64
	ended       bool
	told        backbone.View // the last view, as this delegate has got it
	viewAt      relay.Time
	lanes       map[*session]*lane
	inbox       []packet // frames that wait to be read
	reading     bool
	stuckUntil  relay.Time // it neither sends nor reads until then
}

// lane is what is on its way to another delegate.
type lane struct {
	urgent, frames [][]byte
	bytes          int // of frames
	unread         int // bytes that were sent and not read
	sending        bool
	last           relay.Time // when the last frame arrives
}

type packet struct {
	from  *session
	frame []byte
}

// admit makes a delegate a member of a backbone, of the lowest free rank.
func (g *group) admit(m *member, address string) *session {
	g.incarnation++
	s := &session{member: m, group: g, address: address, incarnation: g.incarnation, lanes: make(map[*session]*lane)}
	for slices.ContainsFunc(g.sessions, func(o *session) bool { return o.rank == s.rank }) {
		s.rank++
	}
	g.sessions = append(slices.Clone(g.sessions), s)
	slices.SortFunc(g.sessions, func(a, b *session) int { return cmp.Compare(a.rank, b.rank) })
	return s
}

// announce tells the delegates of the last view that view, each at its time.
func (g *group) announce() {
	peers := []relay.Peer{}
	view := backbone.View{Quorum: true}
	for _, s := range g.sessions {
		m := s.member
		peers = append(peers, relay.Peer{
			Rank: s.rank, Incarnation: s.incarnation, Zone: m.zone.name, Age: m.age(), Born: m.machine.Born(),
		})
		view.Members = append(view.Members, backbone.Member{
			ID: m.zone.name + "/" + m.id, Address: s.address, Zone: m.zone.name,
		})
	}
	for _, s := range g.sessions {
		s.atView(func() {
			s.told = view
			s.member.choose(func(now relay.Time) { s.member.choice.Installed(now, view) })
			s.member.step(func(now relay.Time) { s.member.machine.SetBackbone(now, peers) })
		})
	}
}

// loseQuorum tells a delegate that its view has no quorum.
func (s *session) loseQuorum() {
	s.atView(func() {
		s.told.Quorum = false
		s.member.choose(func(now relay.Time) { s.member.choice.Installed(now, s.told) })
	})
}

// atView has a delegate learn something about views, in order.
func (s *session) atView(learn func()) {
	sim := s.member.sim
	s.viewAt = max(s.viewAt, sim.now+sim.between(0, 100*millisecond))
	sim.after(s.viewAt-sim.now, func() {
		if !s.ended && !s.member.dead {
			learn()
		}
	})
}

// parts returns the live delegates of the last view that reach each other.
func (g *group) parts() (parts [][]*session) {
	for _, s := range g.sessions {
		if s.ended || s.member.dead {
			continue
		}
		i := slices.IndexFunc(parts, func(part []*session) bool { return part[0].reaches(s) })
		if i < 0 {
			i, parts = len(parts), append(parts, nil)
		}
		parts[i] = append(parts[i], s)
	}
	return parts
}

// quorum reports whether some delegates are a quorum of the last view: more than half of it, or half
// with the lowest rank.
func (g *group) quorum(part []*session) bool {
	twice := 2 * len(part)
	return twice > len(g.sessions) || twice == len(g.sessions) && part[0] == g.sessions[0]
}

// reviewAfter has delegates notice after a while who is there.
func (g *group) reviewAfter(low, high relay.Time) { g.sim.after(g.sim.between(low, high), g.review) }

// review has those delegates that are a quorum install a view without the others, which learn that
// they have none and, when they reach the others again, that they were removed.
func (g *group) review() {
	before, parts := g.sessions, g.parts()
	for _, part := range parts {
		switch {
		case !g.quorum(part):
			continue
		case len(part) < len(before):
			g.sessions = part
			g.announce()
		case slices.ContainsFunc(part, func(s *session) bool { return !s.told.Quorum }):
			g.announce()
		}
		break
	}
	for _, s := range slices.Concat(parts...) {
		switch {
		case !slices.Contains(g.sessions, s):
			s.loseQuorum()
			s.learnRemoval()
		case len(g.sessions) == len(before) && !g.quorum(g.partOf(s)):
			s.loseQuorum()
		}
	}
}

// partOf returns the delegates that one reaches.
func (g *group) partOf(s *session) []*session {
	parts := g.parts()
	return parts[slices.IndexFunc(parts, func(part []*session) bool { return slices.Contains(part, s) })]
}

// learnRemoval ends a membership when it reaches a delegate that has removed it.
func (s *session) learnRemoval() {
	s.member.sim.after(s.member.sim.between(200*millisecond, 3*second), func() {
		knows := func(o *session) bool { return !o.ended && !o.member.dead && s.reaches(o) }
		switch {
		case s.ended || s.member.dead:
		case slices.ContainsFunc(s.group.sessions, knows):
			s.member.sim.record(s.member.id, "is removed from the backbone")
			s.leave()
		default:
			s.learnRemoval()
		}
	})
}

// leave ends a membership on the side of the delegate.
func (s *session) leave() {
	if s.ended {
		return
	}
	m := s.member
	s.ended = true
	m.session = nil
	m.step(func(now relay.Time) { m.machine.SetBackbone(now, nil) })
	s.group.reviewAfter(millisecond, second)
	m.sim.after(m.sim.between(0, 200*millisecond), func() { m.choose(m.choice.Left) })
}

// send sends a frame to the delegate that has a rank now.
func (s *session) send(a relay.Send) {
	m := s.member
	i := slices.IndexFunc(s.group.sessions, func(o *session) bool { return o.rank == a.Peer.Rank })
	if i < 0 || !slices.Contains(s.group.sessions, s) {
		m.sim.after(0, func() { m.step(func(now relay.Time) { m.machine.Dropped(now, a.Peer.Rank) }) })
		return
	}
	to := s.group.sessions[i]
	l := s.lanes[to]
	if l == nil {
		l = &lane{}
		s.lanes[to] = l
	}
	switch {
	case a.Urgent:
		l.urgent = append(l.urgent, a.Frame)
	case l.bytes > 2*m.sim.plan.keepBytes:
		m.machine.Dropped(m.sim.now, a.Peer.Rank)
		return
	default:
		l.frames = append(l.frames, a.Frame)
		l.bytes += len(a.Frame)
	}
	s.transmit(to, l)
}

// reaches reports whether frames of a delegate arrive at another one.
func (s *session) reaches(to *session) bool {
	return s.member.zone.side == to.member.zone.side
}

// maxBatch is how much is sent together.
const maxBatch = 2048

// next takes the frames that are sent together next.
func (l *lane) next() (batch []byte) {
	for len(l.urgent) > 0 && len(batch) < maxBatch {
		batch = append(batch, l.urgent[0]...)
		l.urgent = l.urgent[1:]
	}
	for len(l.frames) > 0 && len(batch) < maxBatch {
		batch = append(batch, l.frames[0]...)
		l.bytes -= len(l.frames[0])
		l.frames = l.frames[1:]
	}
	return batch
}

// transmit sends what waits, as far as the receiver has room, at the rate of the link. What
// is cut off waits.
func (s *session) transmit(to *session, l *lane) {
	sim := s.member.sim
	if l.sending || s.ended || s.member.dead || len(l.urgent)+len(l.frames) == 0 || l.unread > sim.plan.sendWindow {
		return
	}
	l.sending = true
	if !s.reaches(to) || sim.now < s.stuckUntil {
		sim.after(50*millisecond, func() { l.sending = false; s.transmit(to, l) })
		return
	}
	batch := l.next()
	l.unread += len(batch)
	busy := relay.Time(len(batch)) * sim.plan.perByte
	sim.after(busy, func() { l.sending = false; s.transmit(to, l) })
	if sim.options.Tamper != nil && sim.options.Tamper(batch) {
		return
	}
	l.last = max(l.last+1, sim.now+busy+sim.between(sim.plan.far/2, sim.plan.far+1))
	sim.after(l.last-sim.now, func() { s.deliver(to, batch) })
}

// deliver takes a frame in at a delegate, where it waits to be read. If the link is cut, it
// comes later. What a delegate has sent before it died arrives or not.
func (s *session) deliver(to *session, frame []byte) {
	sim := s.member.sim
	switch {
	case to.ended || to.member.dead || s.member.dead && sim.rng.IntN(2) == 0:
	case !s.reaches(to) && slices.Contains(s.group.sessions, to):
		sim.after(50*millisecond, func() { s.deliver(to, frame) })
	case s.reaches(to):
		to.inbox = append(to.inbox, packet{s, frame})
		to.read()
	}
}

// read reads frames, unless the program does not read messages, or too much waits to be
// broadcast.
func (s *session) read() {
	m := s.member
	if s.reading || len(s.inbox) == 0 || s.ended || m.dead || m.full() {
		return
	}
	s.reading = true
	m.sim.after(max(microsecond, s.stuckUntil-m.sim.now), func() {
		s.reading = false
		if len(s.inbox) == 0 || s.ended || m.dead {
			return
		}
		p := s.inbox[0]
		s.inbox = s.inbox[1:]
		if l := p.from.lanes[s]; l != nil {
			l.unread -= len(p.frame)
			p.from.transmit(s, l)
		}
		m.step(func(now relay.Time) { _ = m.machine.FromPeer(now, p.from.rank, p.frame) })
		s.read()
	})
}
