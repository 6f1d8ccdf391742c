package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// process is one process: a member and what drives it, as the root package and
// internal/node do over sockets.
type process struct {
	sim         *Simulation
	id          int
	identity    string
	host        *host
	incarnation uint64 // once it is a member
	nonce       uint64
	version     uint16 // the highest that it speaks
	state       state
	paused      bool
	held        []func() // what waits for a paused process
	backlog     []func() // connections that wait for a joining process

	self       membership.Member
	machine    *member.Machine
	armed      protocol.Time // what its timer is set to
	links      []*link       // by rank
	detector   detector
	program    program
	unicast    unicast
	history    history
	leaving    bool // its program wants to leave
	catchingUp bool // it asks a later member for decisions
	over       bool // another process has its identity
	replace    bool // it joins in the place of a live process
	joinTry    int
	seed       int // the seed that it asks next
}

// state is what a process is to the group.
type state int

const (
	joining state = iota // it asks to be let in
	running              // it is a member
	ended                // it has ended
)

// start makes a process on a host. It is no member yet.
func (s *Simulation) start(identity string, h *host) *process {
	p := &process{sim: s, id: len(s.processes), identity: identity, host: h, armed: protocol.Never}
	p.nonce, p.version = 1+uint64(p.id), s.drawVersion()
	p.detector.process = p
	p.program.process = p
	s.processes = append(s.processes, p)
	h.process = p
	return p
}

// enter makes a process a member.
func (p *process) enter(self membership.Member, v membership.View, start []membership.Position, d membership.Decisions) {
	s := p.sim
	p.self, p.incarnation = self, self.Incarnation
	c := member.Config{
		Self: self, View: v, Start: start, Stream: s.plan.stream,
		Membership: membership.Config{Decisions: d},
		Heartbeat:  heartbeat.Config{Interval: s.plan.heartbeat, Timeout: 5 * s.plan.heartbeat},
		OnView:     p.installed, OnSilence: p.detector.heard, OnState: p.stateChanged,
		OnReport:    p.reported,
		SlowTimeout: s.plan.slowTimeout,
		Unicast:     p.unicast.begin(p, &v),
	}
	if s.options.Configure != nil {
		s.options.Configure(&c)
	}
	var err error
	if p.machine, err = member.New(c); err != nil {
		s.checker.fail("%v cannot begin: %v", p, err)
		return
	}
	p.state = running
	s.checker.register(p)
	p.installed(&v)
	p.step(func() { p.machine.Start(s.now) })
	p.askSeeds()
	backlog := p.backlog
	p.backlog = nil
	for _, f := range backlog {
		f()
	}
}

// installed takes a view.
func (p *process) installed(v *membership.View) {
	p.sim.record(p, "%v", v)
	p.sim.checker.installed(p, v)
	for _, m := range v.Members.All() {
		if m.Rank != p.self.Rank {
			p.setPeer(m.Rank, m.Address)
		}
	}
	p.detector.watch(v)
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
	if state != membership.Evicted && state != membership.Left {
		return
	}
	if p.state == running {
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

// step is one step of the member, as of internal/node.
func (p *process) step(f func()) {
	if p.state != running {
		return
	}
	s := p.sim
	f()
	p.unicast.receive()
	p.unicast.send()
	p.flush()
	for p.program.write() {
		p.flush()
	}
	p.machine.Settle(s.now)
	p.program.look()
	if due := p.machine.Deadline(); due < p.armed {
		p.armed = due
		s.events.push(max(due, s.now), func() { p.wake(due) })
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

// flush sends all frames of the member.
func (p *process) flush() {
	s := p.sim
	for n := 0; ; n++ {
		to, head, body, ok := p.machine.Next(s.now)
		if !ok {
			return
		}
		if n == maxBurst {
			s.checker.fail("%v sends more than %d frames at once", p, maxBurst)
			return
		}
		s.hash.add(uint64(s.now), uint64(p.id), uint64(to), uint64(len(head)+len(body)))
		if result := p.send(to, head, body); result != accepted {
			p.machine.SendFailed(s.now, result == queueFull)
		}
	}
}

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
		if err := p.machine.Receive(p.sim.now, from, frame); err != nil {
			p.sim.checker.fail("%v refuses a frame of rank %d: %v", p, from, err)
		}
		clear(frame) // the bytes are the transport's again
	})
}

// writable takes that the queue of a peer has room.
func (p *process) writable(peer protocol.Rank) {
	p.later(func() { p.step(func() { p.machine.Writable(p.sim.now, peer) }) })
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
	p.close()
	evicted := new(membership.EvictedError)
	p.over = errors.As(err, &evicted) && evicted.Successor != nil
	if (errors.As(err, &evicted) || slow) && !p.leaving && !p.over {
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
	s := p.sim
	p.vanish(func(c *conn, i int) {
		e := &c.ends[i]
		s.after(min(max(e.last+1-s.now, 0), flushTime), func() {
			e.closed, e.frames = true, nil
			s.reset(c, 1-i)
		})
	})
}

const flushTime = second

// vanish ends a process, and what it has of each connection.
func (p *process) vanish(end func(c *conn, i int)) {
	p.state, p.held, p.paused, p.backlog = ended, nil, false, nil
	if p.host.process == p {
		p.host.process = nil
	}
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
	s.record(q, "restarts, to join")
	q.join()
}

func (p *process) String() string {
	return p.identity + "." + string(rune('a'+p.id%26))
}
