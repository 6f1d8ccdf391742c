package reproduce

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/chart"
	"github.com/pleach-go/pleach/lab/experiments"
)

// The collectives thesis' sample sort (§3.7), which it describes and does not measure.

func sampleSort() Experiment {
	return Experiment{
		Name: "fc-sample-sort", Paper: collectives, Title: "Sample sort, a process dies in each phase, beside a restart",
		About: "The thesis never measures its sample sort (§3.7). Its phases end with a Gather of splitters, a Broadcast of limits, an Alltoall of counts and an Alltoallv of the elements; no call protects the sort that " +
			"comes after. Here the phases are those of package samplesort: sample (an Allgather instead of the first two calls), exchange (one Alltoall, which knows its lengths), sort, and write to files, whose completion " +
			"is the input of one more call. A random process kills itself when it begins a phase; for a restart the launcher then kills the others, and the time of a sort without failures is added. " +
			"The records are generated, or in a file. Every output is read and checked.",
		Source: &Source{
			Name: "fc-sample-sort", Seed: 1, Tables: []string{"times"},
			Cost: [sizes]float64{1, 7, 40}, measure: measureSorts,
		},
		charts: drawSorts, claims: judgeSorts,
	}
}

func measureSorts(j *job) (Data, error) {
	s := experiments.Sorts{
		Members: j.pick(3, 4, 8), Records: j.pick(1000, 50_000, 100_000), Trials: j.pick(1, 3, 5),
		Seed: j.seed, Progress: j.done, Command: j.Task,
	}
	rows, err := s.Measure(j.ctx)
	if err != nil {
		return nil, err
	}
	t := newTable(applicationColumns()...)
	addApplication(t, rows)
	return Data{"times": t}, nil
}

func drawSorts(d Data) []chart.Chart {
	return []chart.Chart{lostChart("fc-sample-sort", "Sample sort, what a death costs", experiments.SortPhases(), d,
		experiments.RunThrough)}
}

func judgeSorts(d Data) []Claim {
	t := d["times"]
	through := t.where("approach", experiments.RunThrough)
	dead := through.runs() - through.where("phase", 0).runs()
	claims := []Claim{{
		where: "§3.7", Claim: "sorts in which a process dies, in each of the phases, that end with all records in order",
		Stated:   "all",
		Measured: fmt.Sprintf("%d of %d", dead, dead), Verdict: Agrees, Runs: dead,
		Note: "an output that is not right would have ended the measurement",
	}}
	for i, phase := range experiments.SortPhases() {
		compare := func(data string) string {
			return fmt.Sprintf("%s times (lost: %.0f ms, by a restart %.0f ms) with %s data",
				times(quotients(d, experiments.RunThrough, experiments.Restart, data, i+1)[0]),
				lost(d, experiments.RunThrough, experiments.RunThrough, data, i+1),
				lost(d, experiments.Restart, experiments.RunThrough, data, i+1), data)
		}
		claims = append(claims, Claim{
			where: "§3.7", Claim: "a process dies when it begins to " + phase + ": sample sort compared with a restart",
			Stated:   "not measured",
			Measured: compare(experiments.Generated) + "; " + compare(experiments.Present), Verdict: Answered,
			Runs: t.where("phase", i+1).runs(),
		})
	}
	return claims
}
