package ps

import (
	"cmp"
	"slices"

	"github.com/pleach-go/pleach/collective"
)

// findStragglers finds the processes that hold up the others: a straggler has not
// come to a call that another process is in, and does not itself wait in an
// earlier one. No other process can be the cause: in a call, a process sends all
// that it has.
func (s *Survey) findStragglers() {
	calls := s.openCalls()
	s.Stragglers = []Straggler{}
	for _, p := range s.Processes {
		if straggler, ok := p.lags(calls); ok {
			s.Stragglers = append(s.Stragglers, straggler)
		}
	}
	slices.SortStableFunc(s.Stragglers, func(a, b Straggler) int {
		return cmp.Or(silentFirst(a, b), cmp.Compare(b.Call.Seconds, a.Call.Seconds))
	})
	position := func(p Process) int {
		i := slices.IndexFunc(s.Stragglers, func(h Straggler) bool { return h.Rank == p.Rank })
		if i < 0 {
			return len(s.Stragglers)
		}
		return i
	}
	slices.SortStableFunc(s.Processes, func(a, b Process) int {
		return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.Rank, b.Rank))
	})
}

func silentFirst(a, b Straggler) int {
	switch {
	case a.Silent == b.Silent:
		return 0
	case a.Silent:
		return -1
	}
	return 1
}

// openCall is a call that a process is in.
type openCall struct {
	world string
	call  collective.CallStatus
}

// openCalls returns the calls that processes are in: the earliest of each world
// first, and of one call the longest wait first.
func (s *Survey) openCalls() (calls []openCall) {
	for _, p := range s.Processes {
		for _, w := range p.Worlds {
			for _, d := range w.Current {
				calls = append(calls, openCall{w.World, d})
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b openCall) int {
		return cmp.Or(cmp.Compare(a.world, b.world), cmp.Compare(a.call.Agreement, b.call.Agreement),
			cmp.Compare(a.call.Call, b.call.Call), cmp.Compare(b.call.Seconds, a.call.Seconds))
	})
	return calls
}

// lags returns the first call that a process has not come to. A process that does
// not answer is taken to have come to none.
func (p *Process) lags(calls []openCall) (Straggler, bool) {
	for _, c := range calls {
		if p.Error != "" {
			return Straggler{Rank: p.Rank, World: c.world, Call: c.call, Silent: true}, true
		}
		for _, w := range p.Worlds {
			if w.World == c.world && !cameTo(&w, &c.call) && !waits(&w) {
				return Straggler{Rank: p.Rank, World: c.world, Call: c.call, Last: w.Last}, true
			}
		}
	}
	return Straggler{}, false
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
