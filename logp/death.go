package logp

import (
	"cmp"
	"math"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// deaths is the faults of a run that are yet to come.
type deaths struct {
	timed       []Death                   // by time
	conditional map[int]*conditionalDeath // by rank: dying by a phase or a number of sends
	reports     []reportOfDeath           // of the failure detector, by time
}

// conditionalDeath comes with a phase or a number of sends.
type conditionalDeath struct {
	Death
	sends int // sends lived through
}

type reportOfDeath struct {
	at     protocol.Time
	failed protocol.Rank
}

// inject prepares a run's faults.
func (s *Simulator[B]) inject(faults Faults) {
	s.deaths = deaths{}
	for _, r := range faults.Dead {
		s.kill(0, int(r))
	}
	for _, d := range faults.Deaths {
		if d.Phase == nil && d.AfterSends == 0 {
			s.deaths.timed = append(s.deaths.timed, d)
			continue
		}
		if s.deaths.conditional == nil {
			s.deaths.conditional = make(map[int]*conditionalDeath)
		}
		s.deaths.conditional[int(d.Rank)] = &conditionalDeath{Death: d}
		s.ports[d.Rank].flags |= conditional
		if d.At > 0 {
			s.deaths.timed = append(s.deaths.timed, d)
		}
	}
	slices.SortStableFunc(s.deaths.timed, func(a, b Death) int { return cmp.Compare(a.At, b.At) })
}

// next is the time of the next death or report.
func (d *deaths) next() protocol.Time {
	next := protocol.Never
	if len(d.timed) > 0 {
		next = d.timed[0].At
	}
	if len(d.reports) > 0 {
		next = min(next, d.reports[0].at)
	}
	return next
}

// die kills the processes whose time has come, then makes the reports that are due.
func (s *Simulator[B]) die(now protocol.Time) {
	for len(s.deaths.timed) > 0 && s.deaths.timed[0].At <= now {
		d := s.deaths.timed[0]
		s.deaths.timed = s.deaths.timed[1:]
		if s.ports[d.Rank].dies > int32(now) {
			if !d.Torn {
				s.tear(now, int(d.Rank))
			}
			s.kill(now, int(d.Rank))
		}
	}
	for len(s.deaths.reports) > 0 && s.deaths.reports[0].at <= now {
		s.report(now, s.deaths.reports[0].failed)
		s.deaths.reports = s.deaths.reports[1:]
	}
}

func (s *Simulator[B]) kill(now protocol.Time, r int) {
	s.ports[r].dies = int32(now)
	if s.params.Detector != nil {
		s.deaths.reports = append(s.deaths.reports, reportOfDeath{now + *s.params.Detector, protocol.Rank(r)})
	}
	if s.Trace != nil {
		s.Trace(Event{now, Died, protocol.Rank(r), protocol.NoRank, ""})
	}
}

// tear stops the send that a dying process has in progress.
func (s *Simulator[B]) tear(now protocol.Time, r int) {
	started := protocol.Time(s.ports[r].sendFree) - s.params.O
	if started < 0 || started+s.params.O <= now {
		return
	}
	batch := s.flights.at(started).flights
	if i, ok := slices.BinarySearchFunc(batch, uint32(r), func(f flight[B], r uint32) int {
		return cmp.Compare(f.from, r)
	}); ok {
		batch[i].to = noReceiver
	}
}

// noReceiver is the receiver of a torn message.
const noReceiver = math.MaxUint32

// mayStillSend decides whether a process with a conditional death starts this send
// or dies instead. A process dies after its last send, before the next one.
func (s *Simulator[B]) mayStillSend(now protocol.Time, r int, phase protocol.Phase) bool {
	d := s.deaths.conditional[r]
	if d.Phase != nil && *d.Phase == phase || d.AfterSends > 0 && d.sends >= d.AfterSends {
		s.kill(now, r)
		return false
	}
	d.sends++
	return true
}

// report reports a death to every live machine that observes.
func (s *Simulator[B]) report(now protocol.Time, failed protocol.Rank) {
	for r := range s.ports {
		p := &s.ports[r]
		if o, ok := p.machine.(protocol.Observer); ok && p.dies > int32(now) {
			o.Report(now, failed)
			if p.flags&done == 0 {
				s.due.set(r)
			}
		}
	}
}
