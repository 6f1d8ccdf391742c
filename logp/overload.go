package logp

import (
	"math"
	"math/rand/v2"

	"github.com/pleach-go/pleach/protocol"
)

// Overload makes processes slow that have too little of a processor. A send and a
// receive of a process take o times a factor of its own. Factors are 1 plus an
// exponentially distributed number, so most processes are a little slow and a few very
// slow, and no process knows which.
type Overload struct {
	// Stretch is the mean factor. At 1 or less, no process is slow.
	Stretch float64
	// O is the overhead that is stretched.
	O protocol.Time
	// Lateness is the mean time by which a process wakes up late from a wait, as timers of
	// real hosts fire late. It is distributed exponentially.
	Lateness float64
	// Seed decides the factors and the latenesses.
	Seed uint64
}

// Slow returns the machines of a run as they are on overloaded processes. The simulator
// itself knows nothing of it: a slow process handles a message later than it is
// received, and continues later than its port is free. Coloring latency counts a message
// that waits to be handled as received.
func Slow[B any](machines []protocol.Machine[B], o Overload) []protocol.Machine[B] {
	if o.Stretch <= 1 && o.Lateness <= 0 {
		return machines
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x510))
	slow := make([]protocol.Machine[B], len(machines))
	for i, m := range machines {
		slow[i] = m
		if o.Lateness > 0 {
			slow[i] = &lateMachine[B]{Machine: m, mean: o.Lateness, rng: rng}
		}
		if o.Stretch > 1 {
			extra := protocol.Time(math.Round(float64(o.O) * (o.Stretch - 1) * rng.ExpFloat64()))
			slow[i] = &slowMachine[B]{machine: slow[i], overhead: o.O, extra: extra}
		}
	}
	return slow
}

// lateMachine is the machine of a process whose timers fire late. A message wakes it in
// time.
type lateMachine[B any] struct {
	protocol.Machine[B]
	mean  float64
	rng   *rand.Rand
	until protocol.Time // what the machine waits for
	wake  protocol.Time // when the timer for it fires
}

func (l *lateMachine[B]) Next(now protocol.Time, a *protocol.Action[B]) {
	l.Machine.Next(now, a)
	if a.Verb != protocol.WaitUntil {
		return
	}
	if a.At != l.until {
		l.until, l.wake = a.At, a.At+protocol.Time(math.Round(l.mean*l.rng.ExpFloat64()))
	}
	a.WaitUntil(l.wake)
}

// Report passes a failure detector's report on.
func (l *lateMachine[B]) Report(now protocol.Time, failed protocol.Rank) {
	report(l.Machine, now, failed)
}

// slowMachine is the machine of an overloaded process.
type slowMachine[B any] struct {
	machine         protocol.Machine[B]
	overhead, extra protocol.Time
	received        []slowMessage[B] // and not handled yet, by time
	busy            protocol.Time    // until when the last send keeps it
}

// slowMessage is a message, and when it is handled.
type slowMessage[B any] struct {
	at protocol.Time
	protocol.Message[B]
}

func (s *slowMachine[B]) Receive(now protocol.Time, m *protocol.Message[B]) {
	at := now + s.extra
	if n := len(s.received); n > 0 { // receives do not overlap
		at = max(at, s.received[n-1].at+s.overhead+s.extra)
	}
	s.received = append(s.received, slowMessage[B]{at, *m})
}

func (s *slowMachine[B]) Next(now protocol.Time, a *protocol.Action[B]) {
	for len(s.received) > 0 && s.received[0].at <= now {
		s.machine.Receive(now, &s.received[0].Message)
		s.received = s.received[1:]
	}
	if now < s.busy {
		a.WaitUntil(s.busy)
	} else {
		s.machine.Next(now, a)
	}
	if a.Verb == protocol.Send {
		s.busy = now + s.overhead + s.extra
		return
	}
	if len(s.received) > 0 && (a.Verb != protocol.WaitUntil || a.At > s.received[0].at) {
		a.WaitUntil(s.received[0].at)
	}
}

func (s *slowMachine[B]) Complete() bool { return len(s.received) > 0 || s.machine.Complete() }

// Report passes a failure detector's report on.
func (s *slowMachine[B]) Report(now protocol.Time, failed protocol.Rank) {
	report(s.machine, now, failed)
}

// report passes a failure detector's report to a machine that observes them.
func report[B any](m protocol.Machine[B], now protocol.Time, failed protocol.Rank) {
	if o, ok := m.(protocol.Observer); ok {
		o.Report(now, failed)
	}
}
