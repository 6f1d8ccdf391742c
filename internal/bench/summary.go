package bench

import (
	"math"
	"slices"
	"time"
)

// summary adds up what a group does.
type summary struct {
	rounds, complete int
	took             []time.Duration // per complete burst, for one message
	timed            int             // messages in complete bursts
	busy             time.Duration   // what those took together
	counts           counts
}

// add takes in one burst.
func (s *summary) add(burst int, o outcome) {
	s.rounds += burst
	s.complete += o.complete
	s.counts.cpu += o.cpu
	if o.complete == burst {
		s.took = append(s.took, o.took/time.Duration(burst))
		s.timed += burst
		s.busy += o.took
	}
}

// result sums up. Messages and bytes are those of live members.
func (s *summary) result(r Result) Result {
	slices.Sort(s.took)
	r.Rounds, r.Complete = s.rounds, s.complete
	r.P10, r.P50 = micros(percentile(s.took, 10)), micros(percentile(s.took, 50))
	r.P99, r.Max = micros(percentile(s.took, 99)), micros(percentile(s.took, 100))
	if s.busy > 0 {
		r.PerSecond = round(float64(s.timed)/s.busy.Seconds(), 1)
	}
	if s.rounds > 0 {
		each := float64(s.rounds) * float64(r.Members-r.Dead)
		r.Bytes = round(float64(s.counts.bytes)/each, 2)
		r.Messages = round(float64(s.counts.frames)/each, 3)
		r.CPU = round(float64(s.counts.cpu.Nanoseconds())/1e3/float64(s.rounds), 1)
	}
	return r
}

// percentile is the smallest value that p percent of all are not above; 0 of
// none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

func micros(d time.Duration) float64 { return round(float64(d.Nanoseconds())/1e3, 1) }

// round leaves out digits that mean nothing.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}
