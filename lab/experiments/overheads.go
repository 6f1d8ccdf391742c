package experiments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pleach-go/pleach/logp"
)

// What fault tolerance costs real processes, as the thesis on fault-tolerant
// collectives measures it (Stengler 2017, §5.2, Figures 5.3 to 5.14): without
// failures, each collective in the failure mode that runs through them beside the
// same one in the mode that only reports them. And what the thesis shows for a query
// only: how long a collective takes when a process dies before, during or after it.

// Overheads says what to measure.
type Overheads struct {
	// Members are the sizes of the jobs.
	Members []int
	// Rounds is how often each collective is called with four bytes per process,
	// as in most of the figures.
	Rounds int
	// Fixed is the size of the jobs whose messages are larger, and in which
	// processes die.
	Fixed int
	// Sizes are the messages of Figure 5.5, in bytes. Large is what each process
	// gives to an Alltoall, as in Figure 5.14. Fewer are the rounds of these.
	Sizes []int
	Large int
	Fewer int
	// Trials is how often a process dies in each collective and phase. Seed
	// chooses it.
	Trials int
	Seed   uint64
	// Command starts a process of a job, which calls [ServeTask]: its program is
	// this one, its arguments these and one more. Without, all processes of a job
	// are goroutines of this one; a victim closes its world.
	Command []string
	// Progress, if not nil, is called with the share that is done.
	Progress func(share float64)
}

// OverheadRow is a collective without failures. A round is from one barrier to the
// end of the next, with the collective between them (Figure 5.1); times are in
// microseconds.
type OverheadRow struct {
	Call           string
	Members, Bytes int
	Rounds         int
	// RunThrough is the call with fault tolerance, Report the one that only
	// reports failures.
	RunThrough, Report logp.Distribution
}

// Overhead is the factor that fault tolerance costs, between medians: other load of
// the machine spoils means.
func (r *OverheadRow) Overhead() float64 { return r.RunThrough.P50 / r.Report.P50 }

// RecoveryRow is a round in which a process dies: how long the last survivor takes
// to end it with the right result, in microseconds.
type RecoveryRow struct {
	Call    string
	Phase   string // before, during, after
	Members int
	Trials  int
	// Time is that round's, Normal that of rounds before it.
	Time, Normal logp.Distribution
}

// overheadCalls are the thesis's collectives, in its order.
func overheadCalls() []string {
	return []string{"broadcast", "scatter", "gather", "reduce", "alltoall"}
}

// Phases of a collective in which a process dies.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// Measure measures the overheads of all collectives, then their recoveries.
func (o *Overheads) Measure(ctx context.Context) (overheads []OverheadRow, recoveries []RecoveryRow, err error) {
	if o.Rounds < 1 || o.Fewer < 1 || o.Fixed < 2 || len(o.Members) == 0 || slices.Min(o.Members) < 2 {
		return nil, nil, fmt.Errorf(
			"experiments: overheads of %v and %d members, %d and %d rounds: choose 2 members or more, and 1 round or more",
			o.Members, o.Fixed, o.Rounds, o.Fewer)
	}
	workloads := o.workloads()
	steps := float64(len(workloads) + o.Trials*len(overheadCalls())*3)
	done := 0
	tell := func() {
		done++
		if o.Progress != nil {
			o.Progress(float64(done) / steps)
		}
	}
	for _, d := range workloads {
		rows, err := d.overheads(ctx, o.Command)
		if err != nil {
			return overheads, nil, err
		}
		overheads = append(overheads, rows...)
		tell()
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	for _, call := range overheadCalls() {
		for _, phase := range []string{before, during, after} {
			row := RecoveryRow{Call: call, Phase: phase, Members: o.Fixed, Trials: o.Trials}
			if err := row.measure(ctx, o.Command, rng, tell); err != nil {
				return overheads, recoveries, err
			}
			if o.Trials > 0 {
				recoveries = append(recoveries, row)
			}
		}
	}
	return overheads, recoveries, nil
}

// workloads are the jobs without failures.
func (o *Overheads) workloads() (workloads []workload) {
	for _, members := range o.Members {
		d := workload{Members: members, Rounds: o.Rounds, Victim: noVictim}
		for _, call := range overheadCalls() {
			d.Cases = append(d.Cases, testcase{call, 4, false}, testcase{call, 4, true})
		}
		workloads = append(workloads, d)
	}
	for _, size := range o.Sizes {
		workloads = append(workloads, workload{
			Members: o.Fixed, Rounds: o.Fewer, Victim: noVictim,
			Cases: []testcase{{"broadcast", size, false}, {"broadcast", size, true}},
		})
	}
	if o.Large > 0 {
		part := o.Large / o.Fixed
		workloads = append(workloads, workload{
			Members: o.Fixed, Rounds: o.Fewer, Victim: noVictim,
			Cases: []testcase{{"alltoall", part, false}, {"alltoall", part, true}},
		})
	}
	return workloads
}

// overheads runs a workload whose cases come in pairs: with fault tolerance, and
// without.
func (d *workload) overheads(ctx context.Context, command []string) (rows []OverheadRow, err error) {
	reports, err := d.runJob(ctx, command)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(d.Cases); i += 2 {
		e := d.Cases[i]
		rows = append(rows, OverheadRow{
			Call: e.Call, Members: d.Members, Bytes: e.Bytes, Rounds: d.Rounds,
			RunThrough: slowest(reports, i), Report: slowest(reports, i+1),
		})
	}
	return rows, nil
}

// slowest is how long the rounds of a case took the last process.
func slowest(reports []*taskReport, index int) logp.Distribution {
	var rounds []float64
	for _, r := range reports {
		if r == nil {
			continue
		}
		if rounds == nil {
			rounds = make([]float64, len(r.Times[index]))
		}
		for i, t := range r.Times[index] {
			rounds[i] = max(rounds[i], t)
		}
	}
	return logp.Distribute(rounds, func(t *float64) float64 { return *t })
}

// measure runs a job in which a process dies, as often as the row says.
func (row *RecoveryRow) measure(ctx context.Context, command []string, rng *rand.Rand, tell func()) error {
	var times, normal []float64
	for range row.Trials {
		d := workload{
			Members: row.Members, Rounds: 10, Cases: []testcase{{row.Call, 4, false}},
			Victim: rng.IntN(row.Members), Phase: row.Phase, Moment: rng.Float64(),
		}
		reports, err := d.runJob(ctx, command)
		if err != nil {
			return err
		}
		last := 0.0
		for _, r := range reports {
			if r != nil {
				last = max(last, r.Recovery)
			}
		}
		times, normal = append(times, last), append(normal, slowest(reports, 0).P50)
		tell()
	}
	itself := func(t *float64) float64 { return *t }
	row.Time, row.Normal = logp.Distribute(times, itself), logp.Distribute(normal, itself)
	return nil
}
