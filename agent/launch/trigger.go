package launch

// A fault may wait for a line that its process prints instead of for a time: programs
// tell their phases, and a failure in a certain phase is then one that can be repeated.

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// trigger is a fault that waits for a line. The first match fires it.
type trigger struct {
	fault Fault
	fired atomic.Bool
}

// splitTriggers separates the faults that come at a time from those that wait for a line.
func splitTriggers(faults []Fault) (timed []Fault, triggers []*trigger) {
	for _, f := range faults {
		if f.Line == nil {
			timed = append(timed, f)
		} else {
			triggers = append(triggers, &trigger{fault: f})
		}
	}
	return timed, triggers
}

// lineWatcher returns what looks at the lines of a rank, or nil. It runs where the
// process is read, so it only tells the job.
func (r *running) lineWatcher(rank int) func(line []byte) {
	var own []*trigger
	for _, t := range r.triggers {
		if t.fault.Rank == rank {
			own = append(own, t)
		}
	}
	if own == nil {
		return nil
	}
	return func(line []byte) {
		for _, t := range own {
			if !t.fired.Load() && t.fault.Line.Match(line) && t.fired.CompareAndSwap(false, true) {
				r.matched <- t // has room for all
			}
		}
	}
}

// injectTriggered injects a fault whose line is there. A stop that is not for good ends
// at a time of its own.
func (r *running) injectTriggered(t *trigger) {
	f := t.fault
	r.inject(f)
	if f.Lasts > 0 {
		end := Fault{Kind: FaultResume, Rank: f.Rank, At: time.Since(r.Output.start) + f.Lasts}
		at, _ := slices.BinarySearchFunc(r.Faults, end, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
		r.Faults = slices.Insert(r.Faults, at, end)
	}
	r.endStopped()
}

// unmatched returns the faults whose line did not come.
func (r *running) unmatched() (faults []Fault) {
	for _, t := range r.triggers {
		if !t.fired.Load() {
			faults = append(faults, t.fault)
		}
	}
	return faults
}
