package simulation

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/internal/services/session"
	"github.com/pleach-go/pleach/protocol"
)

// registerCount is how many registers there are.
const registerCount = 3

// registers is a replicated machine: a write returns the value before.
type registers struct {
	order   *orderPart
	applied uint64
	values  [registerCount]uint64 // the operations that have written them
}

// Apply applies a write: its number, and the register.
func (r *registers) Apply(command []byte) []byte {
	d := wire.NewDecoder(command)
	op, register := d.Uint64(), d.Uint8()
	before := r.values[register]
	r.values[register] = op
	r.applied++
	r.order.process.sim.checker.applied(r.order, r.applied, op, register, before)
	return wire.AppendUint64(wire.AppendUint64(nil, r.applied), before)
}

// Snapshot writes the state.
func (r *registers) Snapshot(w io.Writer) error {
	return binary.Write(w, binary.BigEndian, append([]uint64{r.applied}, r.values[:]...))
}

// Restore replaces the state.
func (r *registers) Restore(from io.Reader) error {
	var state [1 + registerCount]uint64
	if err := binary.Read(from, binary.BigEndian, &state); err != nil {
		return err
	}
	r.applied = state[0]
	copy(r.values[:], state[1:])
	return nil
}

// operation is what a client of a host has proposed. The client outlives the processes of its
// host: it sends again what it has no result of.
type operation struct {
	number   uint64
	machine  string // empty: a read
	register uint8
	command  []byte
	invoked  protocol.Time
	by       *services           // that has proposed it first
	done     func(result []byte) // nil: it is not known what has become of it
}

// propose has the client of a host propose something.
func (h *host) propose(s *services, op *operation) {
	op.by, op.invoked = s, s.process.sim.now
	h.operations = append(h.operations, op)
	h.client.Propose(op.machine, op.command, op)
}

// complete gives a client its result.
func (h *host) complete(o *orderPart, op *operation, outcome *session.Outcome) {
	h.operations = slices.DeleteFunc(h.operations, func(other *operation) bool { return other == op })
	if !outcome.Forgotten {
		o.process.sim.checker.completed(o, op, outcome.Result)
	}
	if op.done != nil && op.by == o.services {
		op.done(outcome.Result)
	}
}

// operate has the client of a host write or read registers.
func (s *Simulation) operate() {
	p, count := s.someProcess(), 1
	if s.rng.IntN(4) == 0 {
		count += s.rng.IntN(8)
	}
	for range count {
		read, register := s.rng.IntN(3) == 0, uint8(s.rng.IntN(registerCount))
		if p != nil {
			p.do(func() { p.operate(read, register) })
		}
	}
}

func (p *process) operate(read bool, register uint8) {
	s := p.sim
	s.operations++
	op := &operation{number: s.operations, register: register}
	if !read {
		op.machine, op.command = "registers", append(wire.AppendUint64(nil, op.number), register)
	}
	p.step(func() { p.host.propose(p.services, op) })
}

// clientID draws the name of a client.
func (s *Simulation) clientID() (id session.ClientID) {
	binary.BigEndian.PutUint64(id[:], s.nonce())
	return id
}

// Leases: the clocks of two hosts run at rates that differ by less than leaseDrift.
const (
	leaseTTL   = 800 * millisecond
	leaseDrift = 0.05
	clockRate  = 0.02 // by how much a rate differs from 1, at most
	leaseName  = "lock"
)

// clock is that of a host.
type clock struct {
	rate float64
	// day is the time of day, which steps: its difference from the observer's.
	day protocol.Time
}

func (s *Simulation) drawClock() clock {
	return clock{1 + clockRate*(2*s.rng.Float64()-1), s.between(-10*second, 10*second)}
}

// tokensAhead is how far marks are above tokens, as those of internal/services/tokens.
const tokensAhead = 1 << 20

// floor is what tokens of a process are not below: by a disk, or by clocks that are not set back.
func (p *process) floor(mark *uint64) uint64 {
	switch {
	case p.sim.has(tokensWithoutFloor):
		return 0
	case p.sim.plan.marks && *mark > 0:
		return *mark + 1
	case p.sim.plan.marks:
		return 0
	}
	return uint64(p.sim.now / millisecond)
}

// cover has the disk know of a token.
func cover(mark *uint64, token uint64) {
	if token+tokensAhead/2 > *mark {
		*mark = token + tokensAhead
	}
}

// leasePart is the leases of a process, as package lease drives them.
type leasePart struct {
	*services
	table *leases.Table
	epoch protocol.Time // where its clock begins
	held  *holding
	wants bool
	// preparing means that a command which prepares the table is on its way.
	preparing bool
}

// holding is a lease that a process holds, or has held.
type holding struct {
	leases   *leasePart
	token    uint64
	until    protocol.Time // by the clock of its process
	released bool
}

func (l *leasePart) begin(s *services) {
	*l = leasePart{services: s, epoch: s.process.sim.between(0, second)}
	l.reset()
	l.after(preparePause, l.prepare)
}

// preparePause is how often a process looks whether the table is prepared.
const preparePause = 20 * millisecond

// prepare has the table agree on the base of its tokens.
func (l *leasePart) prepare() {
	l.after(preparePause, l.prepare)
	if !l.order.joining.Knows() || l.preparing {
		return
	}
	self, members := processName(l.process.identity, l.process.self.Incarnation), []string(nil)
	for _, m := range l.process.machine.View().Members.All() {
		members = append(members, processName(m.Identity, m.Incarnation))
	}
	if l.process.sim.has(tokensByOneFloor) {
		members = nil
	}
	c, wait, prepared := l.table.Prepare(l.clock(), self, l.process.floor(&l.process.host.leaseMark), members)
	if prepared || wait > 0 {
		return
	}
	l.preparing = true
	l.propose(&c, func(leases.Verdict, uint64) { l.preparing = false })
}

func processName(id string, incarnation uint64) string { return fmt.Sprint(id, "/", incarnation) }

func (l *leasePart) reset() {
	l.table = leases.New()
	l.table.Drift = leaseDrift
	if l.process.sim.has(leaseByOneClock) {
		l.table.Drift = -0.5
	}
}

// empty begins a table because no process knew the leases.
func (l *leasePart) empty(e *epoch) {
	if !l.process.sim.has(leaseFromEmptyTable) {
		l.table.Begin(l.clock(), e.number, 0)
	}
}

// clock is the time of the process, which steps never.
func (l *leasePart) clock() protocol.Time {
	return l.epoch + protocol.Time(l.process.host.clock.rate*float64(l.process.sim.now))
}

// Apply implements [session.Machine].
func (l *leasePart) Apply(command []byte) []byte {
	result, changed := l.table.Apply(l.clock(), command)
	if v, token := leases.DecodeResult(result); changed && leases.Operation(command[0]) == leases.Acquire {
		cover(&l.process.host.leaseMark, token)
		l.process.sim.checker.granted(&l.order, token, v == leases.OK)
	}
	return result
}

// Snapshot implements [session.Machine].
func (l *leasePart) Snapshot(w io.Writer) error { return l.table.Snapshot(w) }

// Restore implements [session.Machine].
func (l *leasePart) Restore(r io.Reader) error { return l.table.Restore(l.clock(), r) }

// acquire takes the lease as soon as it is free, and holds it for a while.
func (l *leasePart) acquire(hold protocol.Time) {
	switch {
	case !l.wants:
		return
	case l.held != nil, l.table.Base() == 0:
		l.after(leaseTTL/4, func() { l.acquire(hold) })
		return
	}
	s, began := l.process.sim, l.clock()
	floor := l.process.floor(&l.process.host.leaseMark)
	c, free := l.table.Take(began, leaseName, leases.Entry{TTL: leaseTTL, Holder: l.process.identity}, floor)
	if !free {
		_, wait, _ := l.table.Look(began, leaseName)
		early, _ := l.table.Early(began, leaseTTL)
		l.after(max(min(max(wait, early), leaseTTL/4), millisecond), func() { l.acquire(hold) })
		return
	}
	l.propose(&c, func(v leases.Verdict, token uint64) {
		if v == leases.Early {
			l.propose(&leases.Command{Op: leases.Release, Name: leaseName, Entry: leases.Entry{Token: token}},
				func(leases.Verdict, uint64) {})
		}
		if v != leases.OK || c.Op == leases.Elapsed {
			l.after(retryDelay, func() { l.acquire(hold) })
			return
		}
		if s.has(leaseFromTheReply) {
			began = l.clock()
		}
		l.held = &holding{leases: l, token: token, until: began + leaseTTL}
		s.checker.holds(l.held)
		l.after(leaseTTL/3, l.renew)
		l.after(hold, l.release)
	})
}

func (l *leasePart) propose(c *leases.Command, done func(v leases.Verdict, token uint64)) {
	s := l.process.sim
	s.operations++
	l.process.host.propose(l.services, &operation{
		number: s.operations, machine: "leases", command: c.Encode(),
		done: func(result []byte) { done(leases.DecodeResult(result)) },
	})
}

// renew renews the lease that is held.
func (l *leasePart) renew() {
	h, began := l.held, l.clock()
	if h == nil || !h.valid() {
		l.held = nil
		return
	}
	c := leases.Command{Op: leases.Renew, Name: leaseName, Entry: leases.Entry{Token: h.token}}
	l.propose(&c, func(v leases.Verdict, _ uint64) {
		switch {
		case v == leases.No:
			h.released = true
		case v == leases.OK && l.held == h && h.valid():
			h.until = began + leaseTTL
			l.process.sim.checker.holds(h)
		}
	})
	l.after(leaseTTL/3, l.renew)
}

// release ends the lease, and lets another process have it.
func (l *leasePart) release() {
	h := l.held
	if h == nil {
		return
	}
	l.held, h.released = nil, true
	c := leases.Command{Op: leases.Release, Name: leaseName, Entry: leases.Entry{Token: h.token}}
	l.propose(&c, func(leases.Verdict, uint64) {})
}

// valid reports whether a lease is held, by the clock of its host. The holder is a client of the
// process, as one of an agent: it goes on when the process has crashed or ended.
func (h *holding) valid() bool { return !h.released && h.leases.clock() < h.until }
