package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// process is one process: what drives a member over sockets is the root package and
// internal/driver/node, and here it is this. Until it is a member, it has a life: see there.
type process struct {
	sim      *Simulation
	id       int
	identity string
	host     *host
	address  string
	version  uint16 // the highest that it speaks
	observer bool   // it wants to be one
	state    state
	paused   bool
	held     []func() // what waits for a paused process
	backlog  []func() // connections that wait for a process without a role
	clients  []func() // that learn the end of the process

	life       life
	role       role              // nil: it is neither a member nor a seat
	roles      int               // how many it has had
	self       membership.Member // as a member or a seat
	group      *group
	machine    *member.Machine // nil: it is no member yet
	armed      protocol.Time   // what its timer is set to
	links      []*link         // by rank
	detector   *detector
	outside    outside
	program    program
	unicast    sender
	services   *services   // nil: the program uses none
	replicated *replicated // nil: the program has no state
	rich       rich
	history    history
	leaving    bool // its program wants to leave
	awaiting   bool // a process that it does not know waits to connect
	over       bool // another process has its identity
	replace    bool // it joins in the place of a live process
}

// state is what a process is to the group.
type state int

const (
	joining state = iota // it is no member yet
	running              // it is a member
	ended                // it has ended
)

// role is what takes part in views: a [member.Machine] or a [member.RestartedVoter].
type role interface {
	Receive(now protocol.Time, from protocol.Rank, frame []byte) error
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	SendFailed(now protocol.Time, full bool)
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	Deadline() protocol.Time
	Report(now protocol.Time, r member.Report)
	Judge(now protocol.Time, c membership.Claim, v membership.Verdict)
	Saved(now protocol.Time, err error)
	View() membership.View
}

// start makes a process on a host. It is no member yet.
func (s *Simulation) start(identity string, h *host) *process {
	p := &process{sim: s, id: len(s.processes), identity: identity, host: h, armed: protocol.Never}
	if h.address == "" || s.plan.moves {
		s.move(h)
	}
	p.address, p.version = h.address, max(s.drawVersion(), h.version)
	p.observer = s.roles.draw(p)
	p.life.armed = protocol.Never
	p.detector = p.newDetector()
	p.program.process = p
	s.processes = append(s.processes, p)
	h.process = p
	return p
}

// enter makes a process a member.
func (p *process) enter(b *lifecycle.Membership) {
	s := p.sim
	p.rest()
	p.self = b.Self
	p.enterDisk(b)
	if p.state == ended {
		return
	}
	c := member.Config{
		Self: b.Self, View: b.View, Start: b.Start, Stream: s.plan.stream,
		Membership: membership.Config{Decisions: b.Decisions, FlatThreshold: s.plan.flat},
		Heartbeat:  heartbeat.Config{Interval: s.plan.heartbeat, Timeout: 5 * s.plan.heartbeat},
		OnView:     p.installed, OnSilence: p.detector.heard, OnState: p.stateChanged,
		OnReport:    p.reported,
		SlowTimeout: s.plan.slowTimeout,
		Unicast:     p.unicast.begin(p, &b.View),
		Ask:         p.asks(),
	}
	c.Stream.Echo = s.options.Services
	if s.plan.durable {
		c.Save = p.saveVote
	}
	if s.options.Configure != nil {
		s.options.Configure(&c)
	}
	var err error
	p.machine, err = member.New(c)
	if err != nil {
		s.checker.fail("%v cannot begin: %v", p, err)
		return
	}
	p.beginOutside(b)
	p.beginState(b)
	p.rich = rich{direct: newUnicast(p, directChannel{p.machine}), said: make(map[string]uint32)}
	p.life.machine, p.role, p.state = nil, p.machine, running
	s.checker.belongs(p, &b.View)
	s.checker.register(p)
	p.serve(&b.View)
	p.installed(&b.View)
	p.step(func() { p.machine.Start(s.now) })
	p.impair()
	p.stepOutside()
	p.serveBacklog()
}

// serveBacklog takes the connections that have waited.
func (p *process) serveBacklog() {
	backlog := p.backlog
	p.backlog = nil
	for _, f := range backlog {
		f()
	}
}

// installed takes a view. A machine that could not save may go on for a moment.
func (p *process) installed(v *membership.View) {
	if p.state == ended {
		return
	}
	p.sim.record(p, "%v", v)
	p.sim.checker.installed(p, v)
	p.life.last = v
	p.outside.member.Installed(v)
	p.replicated.installed(v)
	p.setPeers(v)
	p.detector.watch(v)
	p.services.installed(v)
}

// setPeers tells the links which processes are members, and where they are.
func (p *process) setPeers(v *membership.View) {
	for _, m := range v.Members.All() {
		if m.Rank != p.self.Rank {
			p.setPeer(m, p.where(m))
		}
	}
}

// reported takes a report that counts.
func (p *process) reported(r member.Report, about membership.Member) {
	if r.Alive {
		p.sim.record(p, "trusts %s", about.Identity)
	} else {
		p.sim.record(p, "suspects %s (silent: %t)", about.Identity, r.Silent)
	}
}

// stateChanged takes the end of the membership.
func (p *process) stateChanged() {
	state, err := p.machine.State()
	switch {
	case state != membership.Evicted && state != membership.Left:
		p.services.quorumChanged()
	case p.state != running:
	case state == membership.Evicted:
		p.evicted(err)
	default:
		p.later(func() { p.end(err) })
	}
}

// do does something in a process, as soon as it runs.
func (p *process) do(f func()) {
	switch {
	case p.state == ended || p.sim.checker.err != nil:
	case p.paused:
		p.held = append(p.held, f)
	default:
		f()
	}
}

// later does something in a process after what it does now.
func (p *process) later(f func()) { p.sim.after(0, func() { p.do(f) }) }

// step is one step of the member or the seat, as of internal/driver/node.
func (p *process) step(f func()) {
	if p.role == nil {
		return
	}
	f()
	if p.state == running {
		p.memberStep()
	} else {
		p.flush()
		p.lookAtSeat()
	}
	if p.role == nil {
		return
	}
	if due := p.role.Deadline(); due < p.armed {
		p.armed = due
		p.sim.events.push(max(due, p.sim.now), func() { p.wake(due) })
	}
}

// memberStep goes on with the program of a member.
func (p *process) memberStep() {
	if p.outside.removed != nil {
		p.flush()
		return
	}
	if p.services != nil {
		p.services.step()
	} else {
		p.unicast.receive()
		p.unicast.send()
		p.readRich()
		p.replicated.step()
	}
	p.flush()
	for p.state == running && p.program.write() {
		p.flush()
	}
	if p.state == running {
		p.machine.Settle(p.sim.now)
		p.program.look()
	}
}

// wake is called by the timer.
func (p *process) wake(due protocol.Time) {
	if p.armed != due {
		return // it was set again
	}
	p.do(func() {
		p.armed = protocol.Never
		p.step(func() {})
	})
}

// flush sends all frames of the member or the seat. The process may crash meanwhile.
func (p *process) flush() {
	s, role := p.sim, p.role
	for n := 0; p.role == role && role != nil; n++ {
		to, head, body, ok := role.Next(s.now)
		if !ok || p.role != role || head[0] == viewFrame && p.mayCrash() {
			return
		}
		if n == maxBurst {
			s.checker.fail("%v sends more than %d frames at once", p, maxBurst)
			return
		}
		s.hash.add(uint64(s.now), uint64(p.id), uint64(to), uint64(len(head)+len(body)))
		if result := p.send(to, head, body); result != accepted {
			role.SendFailed(s.now, result == queueFull)
		}
	}
}

// viewFrame is the first byte of a frame of view changes.
const viewFrame = 0x80

// maxBurst bounds the frames of one step: a member that never stops would hang a run.
const maxBurst = 100_000

// receive takes a frame.
func (p *process) receive(from protocol.Rank, frame []byte) {
	p.step(func() {
		if tamper := p.sim.options.Tamper; tamper != nil {
			for _, reply := range tamper(frame) {
				p.send(from, reply, nil)
			}
		}
		p.receiveStrange(from, frame)
		if err := p.take(from, frame); err != nil {
			p.sim.checker.fail("%v refuses a frame of rank %d: %v", p, from, err)
		}
		clear(frame) // the bytes are the transport's again
	})
}

// longHead is how much of a long frame has arrived when a transport asks where the rest belongs.
const longHead = 64

// take passes a frame on as a transport does: the rest of a long one is read to where it stays.
func (p *process) take(from protocol.Rank, frame []byte) error {
	if body := p.bufferFor(from, frame); body != nil {
		copy(body, frame[longHead:])
		return p.machine.BufferFilled(p.sim.now, from, frame[:longHead], body)
	}
	return p.role.Receive(p.sim.now, from, frame)
}

// bufferFor returns the memory for the rest of a long frame, or nil.
func (p *process) bufferFor(from protocol.Rank, frame []byte) []byte {
	if p.state != running || len(frame) <= longHead {
		return nil
	}
	return p.machine.ReceiveBuffer(from, frame[:longHead:longHead], len(frame))
}

// readPart has a process read a part of a frame, whose connection ends before the rest comes.
func (p *process) readPart(from protocol.Rank, frame []byte) {
	body := p.bufferFor(from, frame)
	for i := range len(body) / 2 {
		body[i] = 0xff
	}
}

// writable takes that the queue of a peer has room.
func (p *process) writable(peer protocol.Rank) {
	p.later(func() { p.step(func() { p.role.Writable(p.sim.now, peer) }) })
}

// end ends a process: its program gets the rest of its messages, and joins again unless
// it left on purpose.
func (p *process) end(err error) {
	s := p.sim
	if p.state != running {
		return
	}
	s.record(p, "ends: %v", err)
	p.program.drain()
	slow := p.machine.TooSlow()
	p.forgetVote()
	if p.state == ended {
		return
	}
	p.close()
	evicted := new(membership.EvictedError)
	p.over = errors.As(err, &evicted) && evicted.Successor != nil
	if (errors.As(err, &evicted) || slow) && !p.leaving && !p.over || s.calm && s.plan.durable {
		s.restartAfter(s.between(10*millisecond, 300*millisecond), p)
	}
}

// crash kills a process. Its host resets its connections, unless it is off.
func (p *process) crash() {
	if p.state == ended {
		return
	}
	p.sim.record(p, "crashes")
	p.vanish(func(c *conn, i int) {
		c.ends[i].closed, c.ends[i].frames = true, nil
		p.sim.reset(c, 1-i)
	})
}

// close ends a process in an orderly way: what it has sent still arrives, if that takes
// less than flushTime.
func (p *process) close() {
	p.vanish(p.flushAndClose)
}

// flushAndClose closes an end of a connection when what was sent there has arrived.
func (p *process) flushAndClose(c *conn, i int) {
	s, e := p.sim, &c.ends[i]
	s.after(min(max(e.last+1-s.now, 0), flushTime), func() {
		e.closed, e.frames = true, nil
		s.reset(c, 1-i)
	})
}

const flushTime = second

// vanish ends a process, and what it has of each connection.
func (p *process) vanish(end func(c *conn, i int)) {
	p.state, p.role, p.held, p.paused, p.backlog = ended, nil, nil, false, nil
	p.life.machine = nil
	if p.host.process == p {
		p.host.process = nil
	}
	for _, lost := range p.clients {
		lost()
	}
	p.clients = nil
	p.hangUp(end)
}

// rest ends the role of a process: its connections close, and others wait for its next one.
func (p *process) rest() {
	if p.role == nil {
		return
	}
	p.hangUp(p.flushAndClose)
	for _, l := range p.links {
		l.dialing = false
	}
	p.roles++
	p.links, p.role, p.life.seat, p.armed, p.detector = nil, nil, nil, protocol.Never, p.newDetector()
}

// hangUp ends what a process has of each connection.
func (p *process) hangUp(end func(c *conn, i int)) {
	for _, c := range p.sim.conns {
		for i := range c.ends {
			if e := &c.ends[i]; e.process == p && !e.closed {
				e.open = false
				end(c, i)
			}
		}
	}
}

// pause stops a process for a while, like SIGSTOP.
func (p *process) pause(d protocol.Time) {
	if p.state == ended || p.paused {
		return
	}
	p.paused = true
	p.sim.record(p, "pauses for %d ms", d/millisecond)
	p.sim.after(d, p.resume)
}

func (p *process) resume() {
	if !p.paused {
		return
	}
	p.paused = false
	p.sim.record(p, "resumes")
	held := p.held
	p.held = nil
	for _, f := range held {
		p.do(f)
	}
	p.sim.rouse()
}

// restartAfter starts a process again under the same identity, on the same host.
func (s *Simulation) restartAfter(d protocol.Time, p *process) {
	s.pendingRestarts++
	s.after(d, func() {
		s.pendingRestarts--
		s.restart(p)
	})
}

func (s *Simulation) restart(p *process) {
	if p.host.process != nil || p.over {
		return
	}
	p.host.off = false
	s.rouse()
	q := s.start(p.identity, p.host)
	q.boot()
}

func (p *process) String() string {
	return p.identity + "." + string(rune('a'+p.id%26))
}
