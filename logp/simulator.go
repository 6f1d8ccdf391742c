package logp

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// Params are the parameters of the LogP model (P is the number of machines).
type Params struct {
	// L is the latency, O the overhead of a send and of a receive.
	L, O protocol.Time
	// FreeReceive lets any number of receives overlap: messages never wait for a
	// receive port. Corrected Gossip's own figures are of that model.
	FreeReceive bool
	// Detector, if not nil, gives every live machine that is a
	// [protocol.Observer] a report of every death, this long after it.
	Detector *protocol.Time
}

// Hop is the time from the start of a send to the end of its receive.
func (p Params) Hop() protocol.Time { return 2*p.O + p.L }

func (p Params) check() error {
	if p.L < 0 || p.O < 1 {
		return fmt.Errorf("logp: L = %d, o = %d: L must not be negative, o at least 1", p.L, p.O)
	}
	if p.L > MaxHop || p.O > MaxHop || p.Hop() > MaxHop {
		return fmt.Errorf("logp: L = %d, o = %d: a message may take %d steps at most; choose a coarser unit", p.L,
			p.O, MaxHop)
	}
	return nil
}

// Limits of a simulation.
const (
	// MaxSize is the largest number of processes.
	MaxSize = math.MaxInt32
	// MaxTime is the time at which a run that has not finished is stopped.
	MaxTime = 1 << 29
	// MaxHop is the longest time one message may take, 2o + L.
	MaxHop = 1 << 16
)

// ErrEndless is the error of a run that is not over at [MaxTime].
var ErrEndless = errors.New("logp: the operation does not end")

// Simulator runs operations of machines with message bodies B, one at a time.
// Its memory is used again from run to run; a Simulator is not for concurrent
// use.
type Simulator[B any] struct {
	params Params
	// Trace, if set, is called for every event in order of time; except the
	// loss of a message, which is reported one overhead after its arrival.
	Trace func(Event)
	// Initiators, if set, are the only machines asked at time 0; all others wait
	// for their first message. It saves asking a million processes of a
	// broadcast that only the root starts.
	Initiators []protocol.Rank

	ports     []port[B]
	extras    []portExtra
	flights   calendar[B]
	contended contention[B]
	due       bitmap // machines to ask at this instant
	colored   bitmap // colored by dissemination
	wakeups   wakeups
	deaths    deaths
	result    Result
	action    protocol.Action[B]
	message   protocol.Message[B]
	starts    protocol.Time // of the first correction send; -1: none yet
}

// port is one process as the simulator sees it, as far as every message needs
// it: its machine and its two ports.
type port[B any] struct {
	machine  protocol.Machine[B]
	sendFree int32 // when the send port is free
	recvFree int32 // when the receive port is free
	dies     int32 // when it is dead
	flags    portFlags
}

// portExtra is the state of a port that only some messages need.
type portExtra struct {
	wake  int32 // when the process asked to be woken; 0: not at all
	claim int32 // index of the flight that has the receive port at this instant
	queue int32 // first of the messages that wait for the receive port
}

type portFlags uint8

const (
	complete    portFlags = 1 << iota // the machine is complete
	done                              // the machine never sends again
	waiting                           // messages wait for the receive port
	conditional                       // it dies by a phase or a number of sends
)

// flight is a message under way.
type flight[B any] struct {
	from, to uint32
	// order is when the send was decided, twice, plus one if only as it
	// started: the message that was decided first is received first.
	order int32
	phase protocol.Phase
	body  B
}

// NewSimulator makes a simulator for groups of up to any size.
func NewSimulator[B any](params Params) (*Simulator[B], error) {
	if err := params.check(); err != nil {
		return nil, err
	}
	return &Simulator[B]{params: params}, nil
}

// Run drives the machines, which must be in their first state, to the end of
// the operation.
func (s *Simulator[B]) Run(machines []protocol.Machine[B], faults Faults) (Result, error) {
	if err := s.prepare(machines, faults); err != nil {
		return Result{}, err
	}
	for now := protocol.Time(0); now != protocol.Never; now = s.nextTime(now) {
		if now > MaxTime {
			return s.result, fmt.Errorf("%w: still active at time %d", ErrEndless, now)
		}
		s.die(now)
		s.receive(now)
		s.askAll(now)
	}
	s.conclude()
	return s.result, nil
}

// prepare makes everything ready for a run, reusing what the last one left.
func (s *Simulator[B]) prepare(machines []protocol.Machine[B], faults Faults) error {
	if len(machines) == 0 || len(machines) > MaxSize {
		return fmt.Errorf("logp: %d processes: between 1 and %d can be simulated", len(machines), MaxSize)
	}
	if err := faults.check(protocol.Rank(len(machines))); err != nil {
		return err
	}
	n := len(machines)
	if len(s.ports) != n {
		s.ports, s.extras = make([]port[B], n), make([]portExtra, n)
		s.due, s.colored = newBitmap(n), newBitmap(n)
	}
	for i, m := range machines {
		s.ports[i] = port[B]{machine: m, dies: math.MaxInt32}
		s.extras[i] = portExtra{queue: none}
	}
	s.due.clear()
	s.colored.clear()
	s.flights.reset(int(s.params.Hop()), n)
	s.contended.reset(int(s.params.O))
	s.wakeups.reset()
	s.result = Result{}
	s.starts = -1
	s.inject(faults)
	if s.Initiators == nil {
		for r := range machines {
			s.initiate(r)
		}
	}
	for _, r := range s.Initiators {
		s.initiate(int(r))
	}
	return nil
}

// initiate lets a machine act at time 0.
func (s *Simulator[B]) initiate(r int) {
	s.due.set(r)
	if s.ports[r].machine.Complete() {
		s.ports[r].flags |= complete
		s.colored.set(r)
	}
}

// nextTime is the next instant at which anything happens.
func (s *Simulator[B]) nextTime(now protocol.Time) protocol.Time {
	if s.flights.active() || s.contended.active() {
		return now + 1
	}
	return min(s.wakeups.next(), s.deaths.next())
}

// askAll asks every process whose send port is free and that may have
// something new to say, in ascending rank.
func (s *Simulator[B]) askAll(now protocol.Time) {
	for _, r := range s.wakeups.take(now) {
		if w := &s.extras[r].wake; *w == int32(now) {
			*w = 0
			s.due.set(int(r))
		}
	}
	if now >= s.params.O {
		for _, r := range s.flights.at(now - s.params.O).senders {
			s.due.set(int(r))
		}
	}
	s.flights.open(now)
	for w, word := range s.due.words {
		if word == 0 {
			continue
		}
		s.due.words[w] = 0
		for ; word != 0; word &= word - 1 {
			r := w<<6 + bits.TrailingZeros64(word)
			p := &s.ports[r]
			if p.flags&done == 0 && p.sendFree <= int32(now) && p.dies > int32(now) {
				s.ask(now, r, p)
			}
		}
	}
}

// ask pulls one machine.
func (s *Simulator[B]) ask(now protocol.Time, r int, p *port[B]) {
	a := &s.action
	switch p.machine.Next(now, a); a.Verb {
	case protocol.Send:
		s.send(now, r, p, a)
	case protocol.WaitUntil:
		if a.At <= now {
			panic(fmt.Sprintf("logp: rank %d waits at %d for %d, which is not later", r, now, a.At))
		}
		at := min(a.At, MaxTime+1)
		if w := &s.extras[r].wake; *w != int32(at) {
			*w = int32(at)
			s.wakeups.add(at, int32(r))
		}
	case protocol.Done:
		p.flags |= done
	}
}

// send puts a message under way.
func (s *Simulator[B]) send(now protocol.Time, r int, p *port[B], a *protocol.Action[B]) {
	if p.flags&conditional != 0 && !s.mayStillSend(now, r, a.Phase) {
		return
	}
	p.sendFree = int32(now + s.params.O)
	s.result.LastSend = now + s.params.O
	s.result.Messages[a.Phase]++
	if a.Phase == protocol.Correction && s.starts < 0 {
		s.starts = now
	}
	if s.Trace != nil {
		s.Trace(Event{now, Sent, protocol.Rank(r), a.To, a.Phase.String()})
	}
	f := s.flights.add(uint32(r))
	f.to, f.phase, f.body = uint32(a.To), a.Phase, a.Body
	f.order = int32(now)*2 + 1
	if a.Queued {
		f.order = int32(a.At) * 2
		s.flights.opened.queued = true
	}
}

// conclude reads off what the run has left.
func (s *Simulator[B]) conclude() {
	for i := range s.ports {
		if p := &s.ports[i]; p.dies == math.MaxInt32 {
			s.result.Live++
			if p.flags&complete == 0 {
				s.result.Unreached++
			}
		}
	}
	s.result.MaxGap = protocol.Rank(s.colored.longestZeroRun())
	if s.starts >= 0 {
		s.result.CorrectionTime = s.result.Quiescence - s.starts
	}
}
