package main

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/collective"
)

// judge finds out who holds up the others: whoever has not come to a call that
// another one is in, and is not waiting for somebody itself. Nobody else is to
// blame: in a call, everybody sends what it has.
func (s *psSurvey) judge() {
	earliest := s.earliest()
	for _, p := range s.Processes {
		if holder, ok := p.holdsUp(earliest); ok {
			s.HoldingUp = append(s.HoldingUp, holder)
		}
	}
	slices.SortStableFunc(s.HoldingUp, func(a, b psHolder) int {
		return cmp.Or(compareBool(b.Silent, a.Silent), cmp.Compare(b.Call.Seconds, a.Call.Seconds))
	})
	place := func(p psProcess) int {
		i := slices.IndexFunc(s.HoldingUp, func(h psHolder) bool { return h.Rank == p.Rank })
		if i < 0 {
			return len(s.HoldingUp)
		}
		return i
	}
	slices.SortStableFunc(s.Processes, func(a, b psProcess) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Rank, b.Rank))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// waited is a call that somebody is in.
type waited struct {
	world string
	call  collective.CallStatus
}

// earliest returns the calls that processes are in, each once, as who is in it for
// the longest time tells it, the earliest of each world first.
func (s *psSurvey) earliest() (calls []waited) {
	for _, p := range s.Processes {
		for _, w := range p.Worlds {
			for _, d := range w.Current {
				calls = append(calls, waited{w.World, d})
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b waited) int {
		return cmp.Or(cmp.Compare(a.world, b.world), cmp.Compare(a.call.Agreement, b.call.Agreement),
			cmp.Compare(a.call.Call, b.call.Call), cmp.Compare(b.call.Seconds, a.call.Seconds))
	})
	return calls
}

// holdsUp returns the first call that a process has not come to. Whoever does not
// answer has come to none, as far as can be seen.
func (p *psProcess) holdsUp(calls []waited) (psHolder, bool) {
	for _, c := range calls {
		if p.Error != "" {
			return psHolder{Rank: p.Rank, World: c.world, Call: c.call, Silent: true}, true
		}
		for _, w := range p.Worlds {
			if w.World == c.world && !cameTo(&w, &c.call) && !waits(&w) {
				return psHolder{Rank: p.Rank, World: c.world, Call: c.call, Last: w.Last}, true
			}
		}
	}
	return psHolder{}, false
}

// cameTo reports whether a process has begun a call of others. Agreements have an
// order of their own.
func cameTo(w *collective.Progress, d *collective.CallStatus) bool {
	if d.Agreement > 0 {
		return w.Agreements >= d.Agreement
	}
	return w.Revoked || w.Calls > d.Call
}

// waits reports whether a process is in a call and waits for others there.
func waits(w *collective.Progress) bool {
	return slices.ContainsFunc(w.Current, func(d collective.CallStatus) bool { return len(d.WaitsFor) > 0 })
}
