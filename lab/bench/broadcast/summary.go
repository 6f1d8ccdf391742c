package broadcast

import (
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
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
	r.P10, r.P50 = bench.Micros(bench.Percentile(s.took, 10)), bench.Micros(bench.Percentile(s.took, 50))
	r.P99, r.Max = bench.Micros(bench.Percentile(s.took, 99)), bench.Micros(bench.Percentile(s.took, 100))
	if s.busy > 0 {
		r.PerSecond = bench.Round(float64(s.timed)/s.busy.Seconds(), 1)
	}
	if s.rounds > 0 {
		each := float64(s.rounds) * float64(r.Members-r.Dead)
		r.Bytes = bench.Round(float64(s.counts.bytes)/each, 2)
		r.Messages = bench.Round(float64(s.counts.frames)/each, 3)
		r.CPU = bench.Round(float64(s.counts.cpu.Nanoseconds())/1e3/float64(s.rounds), 1)
	}
	return r
}
