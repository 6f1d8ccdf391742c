package bench

import (
	"fmt"
	"slices"
	"time"
)

// Restart says what to measure of a job one of whose processes is killed: how
// much longer it takes than without, if the others take over, and if it is
// started again. The job is rounds of computing, then an Allreduce.
type Restart struct {
	// Members is how many processes there are, and Trials how often each way is
	// tried.
	Members, Trials int
	// Rounds is how many rounds the job has, Compute how long a task computes in
	// each, and Elements how many float64 are added up.
	Rounds, Elements int
	Compute          time.Duration
	// Every is after how many rounds a checkpoint is written.
	Every int
	// Seed chooses who is killed, and when.
	Seed uint64
	// Command starts a process: it is to call [ServeWorker].
	Command []string
	// Progress, if not nil, is told how many runs of jobs are done.
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
func (c *Restart) Check() error {
	switch {
	case c.Members < 2 || c.Members > maxWorkers:
		return fmt.Errorf("--members %d: choose a number between 2, of which one survives, and %d", c.Members, maxWorkers)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return fmt.Errorf("--rounds %d: choose a number between 1 and %d", c.Rounds, maxRounds)
	case c.Elements < 1 || c.Elements > maxElements:
		return fmt.Errorf("--elements %d: choose a number between 1 and %d", c.Elements, maxElements)
	case c.Compute < 0 || c.Compute > maxCompute:
		return fmt.Errorf("--compute %v: choose a time between 0s and %v", c.Compute, maxCompute)
	case c.Every < 1 || c.Every > c.Rounds:
		return fmt.Errorf("--checkpoint %d: choose a number of rounds between 1 and %d", c.Every, c.Rounds)
	}
	return checkOpenFiles(&Config{Members: c.Members, Processes: true, Systems: []string{"pleach"}, Dead: []int{0}})
}

// way is what is done about a dead process.
type way struct {
	name       string
	kill       bool
	serial     bool // who has two tasks computes one after the other
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

// Runs is how often jobs are run altogether.
func (c *Restart) Runs() int { return c.Trials * len(ways()) }

// RestartResult is what was measured.
type RestartResult struct {
	Members   int     `json:"members"`
	Rounds    int     `json:"rounds"`
	Elements  int     `json:"elements"`
	ComputeMS float64 `json:"compute_ms"`
	Every     int     `json:"checkpoint_every"`
	Trials    int     `json:"trials"`
	// Job is how long the job takes without a failure, the median.
	Job  float64      `json:"job_p50_ms"`
	Lost []RestartWay `json:"lost"`
}

// RestartWay is what one way has lost: the time of the whole job, from before the
// first process starts until the last one has the result, minus that of the one
// without a failure in the same trial.
type RestartWay struct {
	Way string  `json:"way"`
	P50 float64 `json:"p50_ms"`
	Min float64 `json:"min_ms"`
	Max float64 `json:"max_ms"`
	// Part is the median as a part of the job.
	Part float64 `json:"of_job"`
}

// result sums up: times are those of a trial, by way.
func (c *Restart) result(trials [][]time.Duration) RestartResult {
	r := RestartResult{
		Members: c.Members, Rounds: c.Rounds, Elements: c.Elements, ComputeMS: millis(c.Compute),
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
	job := percentile(jobs, 50)
	r.Job = millis(job)
	for i, w := range ways()[1:] {
		var lost []time.Duration
		for _, times := range trials {
			lost = append(lost, times[i+1]-times[0])
		}
		slices.Sort(lost)
		p50 := percentile(lost, 50)
		r.Lost = append(r.Lost, RestartWay{w.name, millis(p50), millis(lost[0]), millis(lost[len(lost)-1]), round(float64(p50)/float64(job), 3)})
	}
	return r
}
