package broadcast

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// FailureProof correction survives processes that die while it runs (Corrected
// Gossip §III-D, Algorithm 3). Every process sends to both sides until it knows
// of f + 1 live ones on each, tells the opposite side about them in a final
// round, and stops behind the (f+1)-th.
//
// It colors every live process if at most f die during correction, any number
// before; and if the root dies, all live processes or none. Should too few
// processes be left to vouch for each other, they fall back to SOS: every
// process sends to every other.
type FailureProof struct {
	// Failures is f.
	Failures int
	// Timeout is how long a process colored by correction waits to learn of
	// f + 1 others before it falls back to SOS. Too short costs messages, never
	// a process.
	Timeout protocol.Time
}

// String returns the correction as flags spell it.
func (f FailureProof) String() string { return fmt.Sprintf("failure-proof:%d", f.Failures) }

func (f FailureProof) check(c *Config) error {
	switch {
	case f.Failures < 0:
		return fmt.Errorf("failure-proof correction against %d failures", f.Failures)
	case f.Timeout < 1:
		return errors.New("failure-proof correction needs a timeout: how long to wait before SOS")
	case c.Start == Overlapped:
		return errors.New("failure-proof correction counts the processes colored before it starts, " +
			"which an overlapped start cannot tell: choose a synchronized one")
	case c.Line:
		return errors.New("failure-proof correction takes a full circle as its sign to call SOS: it cannot run on a line")
	}
	return nil
}

// lateDuty: those colored by correction wait for f + 1 names, or call SOS.
func (f FailureProof) lateDuty() bool { return true }

func (f FailureProof) states(n int) func(i int) corrector {
	state := failureProofState{need: f.Failures + 1, timeout: f.Timeout}
	return slab(n, state, func(p *failureProofState) corrector { return p })
}

type failureProofState struct {
	need     int // f + 1
	timeout  protocol.Time
	colored  protocol.Time
	side     [sides]sideState
	upcoming side
	sos      bool
	called   distance // distance SOS has been sent to
}

// sideState is what a process knows and does on one side.
type sideState struct {
	known []distance       // the nearest f + 1 live processes there, nearest first
	told  *[]protocol.Rank // the same as ranks, as messages carry them
	sent  distance         // distance sent to in this round
	final bool             // the round that tells of f others has begun
}

func (f *failureProofState) begin(_ *Process, now protocol.Time) {
	*f = failureProofState{need: f.need, timeout: f.timeout, colored: now, upcoming: right}
}

// handle learns of the sender and of all it knows behind it.
func (f *failureProofState) handle(p *Process, _ protocol.Time, m *Message) {
	if m.Body.Kind == SOS {
		f.sos = true
		return
	}
	s := heardFrom(m.Body.Kind)
	f.learn(p, s, m.From)
	if m.Body.Known != nil {
		for _, r := range *m.Body.Known {
			f.learn(p, s, r)
		}
	}
}

// learn keeps rank r among the nearest f + 1 on side s.
func (f *failureProofState) learn(p *Process, s side, r protocol.Rank) {
	known := &f.side[s].known
	at, found := slices.BinarySearch(*known, p.distance(s, r))
	if r == p.rank() || found || at == f.need {
		return
	}
	*known = slices.Insert(*known, at, p.distance(s, r))
	*known = (*known)[:min(len(*known), f.need)]
	f.side[s].told = nil
}

func (f *failureProofState) next(p *Process, now protocol.Time, a *Action) {
	switch {
	case f.sos:
		f.call(p, a)
		return
	case p.corrected:
		f.await(p, now, a)
		return
	}
	for range sides {
		s := f.upcoming
		f.upcoming = s.other()
		if f.finished(s) {
			continue
		}
		if f.side[s].sent == p.plan.circle()-1 {
			f.sos = true // a full circle, and too few to vouch for each other
			f.call(p, a)
			return
		}
		f.side[s].sent++
		p.correctAt(s, f.side[s].sent, a)
		a.Body.Known = f.tell(p, s.other())
		return
	}
	a.Done()
}

// finished settles where side s stands before it sends: a process that knows f
// others behind it starts over with the final round, which ends behind the
// (f+1)-th process ahead.
func (f *failureProofState) finished(s side) bool {
	ahead, behind := &f.side[s], &f.side[s.other()]
	if !ahead.final && len(behind.known) >= f.need-1 {
		ahead.final = true
		ahead.sent = 0
	}
	return ahead.final && len(ahead.known) == f.need && ahead.sent >= ahead.known[f.need-1]
}

// tell returns the ranks known on side s, as a message carries them.
func (f *failureProofState) tell(p *Process, s side) *[]protocol.Rank {
	fl := &f.side[s]
	if fl.told == nil && len(fl.known) > 0 {
		ranks := make([]protocol.Rank, len(fl.known))
		for i, d := range fl.known {
			ranks[i] = p.neighbor(s, d)
		}
		fl.told = &ranks
	}
	return fl.told
}

// await is what a process colored by correction does: nothing, once it knows of
// f + 1 others; SOS, if it does not learn of them in time.
func (f *failureProofState) await(p *Process, now protocol.Time, a *Action) {
	switch {
	case f.vouched(p) >= f.need:
		a.Wait() // an SOS may still come by, and is passed on
	case now < f.colored+f.timeout:
		a.WaitUntil(f.colored + f.timeout)
	default:
		f.sos = true
		f.call(p, a)
	}
}

// vouched counts the distinct processes known on both sides together.
func (f *failureProofState) vouched(p *Process) int {
	n := len(f.side[left].known)
	for _, d := range f.side[right].known {
		if !slices.Contains(f.side[left].known, p.plan.circle()-d) {
			n++
		}
	}
	return n
}

// call sends SOS to every other process in turn.
func (f *failureProofState) call(p *Process, a *Action) {
	if f.called == p.plan.circle()-1 {
		a.Done()
		return
	}
	f.called++
	a.Send(protocol.Correction, p.neighbor(right, f.called), Body{Kind: SOS})
}
