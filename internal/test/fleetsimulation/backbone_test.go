package fleetsimulation

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// backbone is a group of delegates. There are several after a partition.
type backbone struct {
	sessions    []*session
	incarnation uint64
}

// session is one membership in a backbone.
type session struct {
	member      *member
	backbone    *backbone
	rank        int
	incarnation uint64
	ended       bool
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

// enterBackbone has a delegate enter the backbone of its zone, after a while.
func (m *member) enterBackbone() {
	if m.entering || m.session != nil || m.dead || m.ready == 0 || !slices.Contains(m.zone.delegates(), m) {
		return
	}
	m.entering = true
	m.sim.after(m.sim.between(50*millisecond, second), func() {
		m.entering = false
		if b := m.zone.backbone; b != nil && m.session == nil && !m.dead {
			m.joinBackbone(b)
		} else {
			m.enterBackbone()
		}
	})
}

// joinBackbone makes a delegate a member of a backbone, of the lowest free rank.
func (m *member) joinBackbone(b *backbone) {
	b.incarnation++
	s := &session{member: m, backbone: b, incarnation: b.incarnation, lanes: make(map[*session]*lane)}
	for slices.ContainsFunc(b.sessions, func(o *session) bool { return o.rank == s.rank }) {
		s.rank++
	}
	m.session = s
	b.sessions = append(b.sessions, s)
	m.sim.record(m.id, "enters the backbone, rank %d of %d", s.rank, len(b.sessions))
	b.announce()
}

// announce tells the delegates a view, each at its time.
func (b *backbone) announce() {
	peers := []relay.Peer{}
	for _, s := range b.sessions {
		peers = append(peers, relay.Peer{
			Rank: s.rank, Incarnation: s.incarnation, Zone: s.member.zone.name,
			Age: s.member.age(), Born: s.member.machine.Born(),
		})
	}
	for _, s := range b.sessions {
		sim := s.member.sim
		s.viewAt = max(s.viewAt, sim.now+sim.between(0, 100*millisecond))
		sim.after(s.viewAt-sim.now, func() {
			if !s.ended {
				s.member.step(func(now relay.Time) { s.member.machine.SetBackbone(now, peers) })
			}
		})
	}
}

// crash removes a delegate that has died, after a while.
func (s *session) crash() {
	sim := s.member.sim
	sim.after(sim.between(millisecond, 3*second), s.remove)
}

// remove installs a view without a delegate.
func (s *session) remove() {
	i := slices.Index(s.backbone.sessions, s)
	if i >= 0 {
		s.backbone.sessions = slices.Delete(slices.Clone(s.backbone.sessions), i, i+1)
		s.backbone.announce()
	}
	s.leave()
}

// leave ends a membership on the side of the delegate.
func (s *session) leave() {
	if s.ended {
		return
	}
	s.ended = true
	s.member.session = nil
	s.member.step(func(now relay.Time) { s.member.machine.SetBackbone(now, nil) })
	s.member.enterBackbone()
}

// send sends a frame to the delegate that has a rank now.
func (s *session) send(a relay.Send) {
	m := s.member
	i := slices.IndexFunc(s.backbone.sessions, func(o *session) bool { return o.rank == a.Peer.Rank })
	if i < 0 || !slices.Contains(s.backbone.sessions, s) {
		m.sim.after(0, func() { m.step(func(now relay.Time) { m.machine.Dropped(now, a.Peer.Rank) }) })
		return
	}
	to := s.backbone.sessions[i]
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
	return s.member.zone == to.member.zone || !s.member.zone.cut && !to.member.zone.cut
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
	case !s.reaches(to) && slices.Contains(s.backbone.sessions, to):
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
