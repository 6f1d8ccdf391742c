package simulation

import (
	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// link is what a process's transport has of one peer, as in internal/driver/tcp: a connection,
// an attempt to make one, or neither.
type link struct {
	rank    protocol.Rank
	address string // "": not known
	conn    *conn
	end     int // of the connection
	attempt uint64
	dialing bool
	waiting [][]byte // frames, for the connection
	bytes   int
	full    bool
	backoff protocol.Time
	retryAt protocol.Time
	// member is the process that the view has at the rank.
	member membership.Member
	// incarnation is that of the newest process seen at the rank since.
	incarnation uint64
}

// sent is what came of sending a frame.
type sent int

const (
	accepted sent = iota
	queueFull
	peerDown
)

// link returns the link to a rank.
func (p *process) link(r protocol.Rank) *link {
	for int(r) >= len(p.links) {
		p.links = append(p.links, &link{rank: protocol.Rank(len(p.links))})
	}
	return p.links[r]
}

// send takes a frame for a peer.
func (p *process) send(to protocol.Rank, head, body []byte) sent {
	if to < 0 {
		return peerDown
	}
	l := p.link(to)
	if l.conn == nil && !l.dialing {
		if l.address == "" || p.sim.now < l.retryAt {
			return peerDown
		}
		p.dial(l)
	}
	size := len(head) + len(body) + headerSize
	frame := append(append(make([]byte, 0, size), head...), body...)
	limit := p.sim.plan.queueBytes
	if l.conn != nil {
		e := &l.conn.ends[l.end]
		if e.queued+size > limit && e.queued > 0 {
			e.full = true
			return queueFull
		}
		p.sim.transmit(l.conn, l.end, frame)
		return accepted
	}
	if l.bytes+size > limit && l.bytes > 0 {
		l.full = true
		return queueFull
	}
	l.waiting, l.bytes = append(l.waiting, frame), l.bytes+size
	return accepted
}

// dial begins to connect. It fails at once if the host refuses, and otherwise after a
// while.
func (p *process) dial(l *link) {
	s := p.sim
	l.dialing = true
	l.attempt++
	attempt := l.attempt
	to := s.hostAt(l.address)
	fail := func() {
		p.do(func() {
			if l.dialing && l.attempt == attempt {
				p.dialFailed(l)
			}
		})
	}
	s.after(dialTimeout, fail)
	s.after(s.latency(), func() {
		if p.role == nil || !p.host.reaches(to) {
			return
		}
		refused := func() {
			if to.reaches(p.host) {
				s.after(s.latency(), fail)
			}
		}
		q := to.at(l.address)
		if q == nil {
			refused()
			return
		}
		q.accept(p, l, attempt, refused)
	})
}

const dialTimeout = 2 * second

// accept is the accepting side of a dial. A process that is not a member yet, nor a seat,
// serves the connections that wait for it when it is.
func (p *process) accept(from *process, theirs *link, attempt uint64, refused func()) {
	if p.role == nil {
		p.backlog = append(p.backlog, func() { p.accept(from, theirs, attempt, refused) })
		return
	}
	p.do(func() {
		if p.role == nil {
			p.accept(from, theirs, attempt, refused)
			return
		}
		l := p.link(from.self.Rank)
		switch {
		case theirs.attempt != attempt || !theirs.dialing || from.role == nil:
			return // it has given up
		case theirs.rank != p.self.Rank || from.self.Rank == p.self.Rank:
			refused()
			return
		case !p.knows(from):
			refused()
			return
		case from.self.Incarnation == l.incarnation && l.conn != nil && l.conn.ends[1-l.end].process == from:
			return // the connection that this process has dialed is on its way
		case l.dialing && p.self.Rank < from.self.Rank:
			return // both dial, and the lower rank's connection wins
		}
		p.connect(from, theirs, l)
	})
}

// knows reports whether a process is a member by this one's view. A process that was
// removed learns it; one that a later view has admitted tries again, and tells what has
// admitted it if that takes long.
func (p *process) knows(from *process) bool {
	s, view := p.sim, p.role.View()
	m, ok := view.Member(from.self.Rank)
	switch {
	case ok && isMember(&m, &from.self):
		return true
	case from.self.Incarnation > view.Number:
		p.awaitView(from)
		return false
	case ok && m.Incarnation == from.self.Incarnation:
		return false // another process has its place
	}
	holder := &m
	if !ok {
		holder = nil
	}
	s.after(s.latency(), func() {
		from.do(func() {
			from.removed(view.Number, holder)
		})
	})
	return false
}

// connect makes the connection that another process has dialed. The dialing process
// learns it a little later.
func (p *process) connect(from *process, theirs, l *link) {
	s := p.sim
	if l.conn != nil {
		s.shut(l.conn, l.end)
	}
	c := &conn{ends: [2]end{{process: from, peer: p.self.Rank}, {process: p, peer: from.self.Rank}}}
	s.conns = append(s.conns, c)
	self := p.self
	p.attach(l, c, 1, from.self.Incarnation)
	s.after(s.latency(), func() {
		from.do(func() { from.connected(theirs, c, &self) })
	})
}

// connected takes the connection that a process has dialed. Another process than the one
// that the view names may listen at the address: one before it, or one after.
func (p *process) connected(l *link, c *conn, to *membership.Member) {
	switch s := p.sim; {
	case !l.dialing || l.conn != nil || to.Incarnation < l.incarnation:
		s.shut(c, 0)
	case to.Incarnation < l.member.Incarnation:
		s.shut(c, 0)
		p.dialFailed(l)
	case !isMember(&l.member, to):
		s.shut(c, 0)
		l.dialing, l.waiting, l.bytes = false, nil, 0
		p.backOff(l)
		p.detector.step(func(m *detection.Machine) { m.Replaced(l.rank, l.member.Incarnation) })
		p.step(func() { p.role.Down(s.now, l.rank) })
	case !c.ends[0].closed:
		p.attach(l, c, 0, to.Incarnation)
		s.arrive(c, 1)
	}
}

// isMember reports whether a process is the member that a view names.
func isMember(m, process *membership.Member) bool {
	return m.Incarnation == process.Incarnation && (m.Nonce == 0 || m.Nonce == process.Nonce)
}

// attach makes a connection the link's, and tells the member.
func (p *process) attach(l *link, c *conn, i int, incarnation uint64) {
	s := p.sim
	l.conn, l.end, l.dialing, l.backoff, l.retryAt, l.incarnation = c, i, false, 0, 0, incarnation
	c.ends[i].open, c.ends[i].incarnation = true, incarnation
	c.ends[i].full, l.full = l.full, false
	for _, frame := range l.waiting {
		s.transmit(c, i, frame)
	}
	l.waiting, l.bytes = nil, 0
	p.detector.step(func(m *detection.Machine) { m.Met(l.rank, incarnation) })
	p.step(func() { p.role.Up(s.now, l.rank) })
}

// connClosed takes the end of a connection, after the calls that are in progress.
func (p *process) connClosed(c *conn, e *end, opened bool) {
	if !opened || p.role == nil {
		return
	}
	l := p.link(e.peer)
	if l.conn == c {
		l.conn = nil
		p.backOff(l)
	}
	full := e.full
	p.later(func() { p.down(l, full) })
}

// dialFailed ends an attempt.
func (p *process) dialFailed(l *link) {
	full := l.full
	l.dialing, l.waiting, l.bytes, l.full = false, nil, 0, false
	p.backOff(l)
	p.down(l, full)
}

// down tells the detector and the member that a peer is not connected.
func (p *process) down(l *link, full bool) {
	if p.role == nil || p.link(l.rank) != l {
		return // it is something else meanwhile
	}
	p.detector.step(func(m *detection.Machine) { m.Down(p.sim.now, l.rank, nil) })
	p.step(func() { p.role.Down(p.sim.now, l.rank) })
	if full {
		p.step(func() { p.role.Writable(p.sim.now, l.rank) })
	}
}

func (p *process) backOff(l *link) {
	l.backoff = min(max(2*l.backoff, 10*millisecond), second)
	l.retryAt = p.sim.now + l.backoff - p.sim.between(0, l.backoff/2+1)
}

// setPeer sets the process that has a rank, and its address. It closes a connection to
// another process, or to the former address.
func (p *process) setPeer(m *membership.Member, address string) {
	l := p.link(m.Rank)
	if l.member.Incarnation != m.Incarnation {
		l.incarnation, l.backoff, l.retryAt = 0, 0, 0
		if l.conn != nil && l.conn.ends[l.end].incarnation != m.Incarnation {
			p.sim.shut(l.conn, l.end)
		}
	}
	l.member = *m
	if l.address == address {
		return
	}
	l.address = address
	if l.conn != nil && l.conn.ends[1-l.end].process.address != address {
		p.sim.shut(l.conn, l.end)
	}
	if l.dialing {
		full := l.full
		l.dialing, l.waiting, l.bytes, l.full = false, nil, 0, false
		p.later(func() { p.down(l, full) })
	}
	l.retryAt, l.backoff = 0, 0
}
