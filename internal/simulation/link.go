package simulation

import (
	"github.com/pleach-go/pleach/protocol"
)

// link is what a process's transport has of one peer, as in transport/tcp: a connection,
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
	// incarnation is that of the newest process seen at the rank.
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
		if p.state != running || !p.host.reaches(to) {
			return
		}
		refused := func() {
			if to.reaches(p.host) {
				s.after(s.latency(), fail)
			}
		}
		if to.process == nil {
			refused()
			return
		}
		to.process.accept(p, l, attempt, refused)
	})
}

const dialTimeout = 2 * second

// accept is the accepting side of a dial. A process that is not a member yet serves the
// connections that wait for it when it is.
func (p *process) accept(from *process, theirs *link, attempt uint64, refused func()) {
	if p.state == joining {
		p.backlog = append(p.backlog, func() { p.accept(from, theirs, attempt, refused) })
		return
	}
	p.do(func() {
		l := p.link(from.self.Rank)
		switch {
		case theirs.attempt != attempt || !theirs.dialing || from.state != running:
			return // it has given up
		case theirs.rank != p.self.Rank || from.self.Rank == p.self.Rank:
			refused()
			return
		case !p.knows(from):
			refused()
			return
		case from.incarnation == l.incarnation && l.conn != nil && l.conn.ends[1-l.end].process == from:
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
	s, view := p.sim, p.machine.View()
	m, ok := view.Member(from.self.Rank)
	switch {
	case ok && m.Incarnation == from.incarnation:
		return true
	case from.incarnation > view.Number:
		p.catchUp(from)
		return false
	}
	holder := &m
	if !ok {
		holder = nil
	}
	s.after(s.latency(), func() {
		from.do(func() {
			if from.state == running {
				from.step(func() { from.machine.Removed(s.now, view.Number, holder) })
			}
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
	p.attach(l, c, 1, from.incarnation)
	s.after(s.latency(), func() {
		from.do(func() {
			switch {
			case !theirs.dialing || theirs.conn != nil || p.incarnation < theirs.incarnation:
				s.shut(c, 0)
			case !c.ends[0].closed:
				from.attach(theirs, c, 0, p.incarnation)
				s.arrive(c, 1)
			}
		})
	})
}

// attach makes a connection the link's, and tells the member.
func (p *process) attach(l *link, c *conn, i int, incarnation uint64) {
	s := p.sim
	l.conn, l.end, l.dialing, l.backoff, l.retryAt, l.incarnation = c, i, false, 0, 0, incarnation
	c.ends[i].open = true
	c.ends[i].full, l.full = l.full, false
	for _, frame := range l.waiting {
		s.transmit(c, i, frame)
	}
	l.waiting, l.bytes = nil, 0
	p.detector.up(l.rank, incarnation)
	p.step(func() { p.machine.Up(s.now, l.rank) })
}

// connClosed takes the end of a connection, after the calls that are in progress.
func (p *process) connClosed(c *conn, e *end, opened bool) {
	if !opened || p.state != running {
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
	p.detector.down(l.rank)
	p.step(func() { p.machine.Down(p.sim.now, l.rank) })
	if full {
		p.step(func() { p.machine.Writable(p.sim.now, l.rank) })
	}
}

func (p *process) backOff(l *link) {
	l.backoff = min(max(2*l.backoff, 10*millisecond), second)
	l.retryAt = p.sim.now + l.backoff - p.sim.between(0, l.backoff/2+1)
}

// setPeer sets the address of a rank. It closes a connection to the former address.
func (p *process) setPeer(r protocol.Rank, address string) {
	l := p.link(r)
	if l.address == address {
		return
	}
	l.address = address
	if l.conn != nil && l.conn.ends[1-l.end].process.host.address != address {
		p.sim.shut(l.conn, l.end)
	}
	if l.dialing {
		full := l.full
		l.dialing, l.waiting, l.bytes, l.full = false, nil, 0, false
		p.later(func() { p.down(l, full) })
	}
	l.retryAt, l.backoff = 0, 0
}
