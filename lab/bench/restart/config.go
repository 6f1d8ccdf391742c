package restart

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what job to measure.
type Config struct {
	// Members is how many processes there are, and Trials how often each way of
	// recovery is tried.
	Members, Trials int
	// Rounds is how many rounds the job has, Compute how long a task computes in
	// each, and Elements how many float64 are added up.
	Rounds, Elements int
	Compute          time.Duration
	// Every is after how many rounds a checkpoint is written.
	Every int
	// Seed chooses the process that is killed, and when.
	Seed uint64
	// Command starts a process: it is to call [Serve].
	Command []string
	// Progress, if not nil, is called with how many runs of jobs are done.
	Progress func(done int)
}

// Limits of what one machine can be asked.
const (
	maxWorkers  = 200
	maxTrials   = 100_000
	maxElements = 1 << 24
	maxCompute  = time.Minute
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 2 || c.Members > maxWorkers:
		return fmt.Errorf("--members %d: choose a number between 2, of which one survives, and %d", c.Members, maxWorkers)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	case c.Rounds < 1 || c.Rounds > bench.MaxRounds:
		return fmt.Errorf("--rounds %d: choose a number between 1 and %d", c.Rounds, bench.MaxRounds)
	case c.Elements < 1 || c.Elements > maxElements:
		return fmt.Errorf("--elements %d: choose a number between 1 and %d", c.Elements, maxElements)
	case c.Compute < 0 || c.Compute > maxCompute:
		return fmt.Errorf("--compute %v: choose a time between 0s and %v", c.Compute, maxCompute)
	case c.Every < 1 || c.Every > c.Rounds:
		return fmt.Errorf("--checkpoint %d: choose a number of rounds between 1 and %d", c.Every, c.Rounds)
	}
	return bench.CheckOpenFiles(c.Members, c.Members*launch.FilesPerProcess, "members")
}

// way is how a job recovers from a dead process.
type way struct {
	name       string
	kill       bool
	serial     bool // a process with two tasks computes one after the other
	again      bool // the job is started again
	checkpoint bool // from the last checkpoint
}

// ways are measured in this order, in every trial.
func ways() []way {
	return []way{
		{name: "no failure"},
		{name: "run-through", kill: true},
		{name: "run-through, serial", kill: true, serial: true},
		{name: "restart, checkpoint", kill: true, again: true, checkpoint: true},
		{name: "restart, start", kill: true, again: true},
	}
}

// Runs is how many jobs are run, in all.
func (c *Config) Runs() int { return c.Trials * len(ways()) }

// Result is what was measured.
type Result struct {
	Members   int     `json:"members"`
	Rounds    int     `json:"rounds"`
	Elements  int     `json:"elements"`
	ComputeMS float64 `json:"compute_ms"`
	Every     int     `json:"checkpoint_every"`
	Trials    int     `json:"trials"`
	// Job is how long the job takes without a failure, the median.
	Job  float64     `json:"job_p50_ms"`
	Lost []WayResult `json:"lost"`
}

// WayResult is the time lost in one way of recovery: the time of the whole job, from
// before the first process starts until the last one has the result, minus that of
// the job without a failure in the same trial.
type WayResult struct {
	Way string  `json:"way"`
	P50 float64 `json:"p50_ms"`
	Min float64 `json:"min_ms"`
	Max float64 `json:"max_ms"`
	// Part is the median as a part of the job.
	Part float64 `json:"of_job"`
}

// result summarizes trials: times are by way.
func (c *Config) result(trials [][]time.Duration) Result {
	r := Result{
		Members: c.Members, Rounds: c.Rounds, Elements: c.Elements, ComputeMS: bench.Millis(c.Compute),
		Every: c.Every, Trials: len(trials),
	}
	if len(trials) == 0 {
		return r
	}
	var jobs []time.Duration
	for _, times := range trials {
		jobs = append(jobs, times[0])
	}
	slices.Sort(jobs)
	job := bench.Percentile(jobs, 50)
	r.Job = bench.Millis(job)
	for i, w := range ways()[1:] {
		var lost []time.Duration
		for _, times := range trials {
			lost = append(lost, times[i+1]-times[0])
		}
		slices.Sort(lost)
		p50 := bench.Percentile(lost, 50)
		r.Lost = append(r.Lost, WayResult{
			w.name, bench.Millis(p50), bench.Millis(lost[0]), bench.Millis(lost[len(lost)-1]),
			bench.Round(float64(p50)/float64(job), 3),
		})
	}
	return r
}
