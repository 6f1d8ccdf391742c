package sort

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Records is how many records of 100 bytes are sorted, Members by how many
	// processes, and Trials how often.
	Records, Members, Trials int
	// GNU runs GNU sort for comparison.
	GNU bool
	// Seed chooses the records, and the process that is killed.
	Seed uint64
	// Command starts a process that calls [Serve] with the two arguments behind it.
	Command []string
	// Progress, if not nil, is called with how many runs of jobs are done.
	Progress func(done int)
}

// Limits of what one machine can be asked.
const (
	maxRecords = 1_000_000_000
	maxMembers = 200
	maxTrials  = 10_000
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Records < 1 || c.Records > maxRecords:
		return fmt.Errorf("--records %d: choose a number between 1 and %d", c.Records, maxRecords)
	case c.Members < 2 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 2, of which one survives, and %d", c.Members, maxMembers)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	}
	if err := bench.CheckOpenFiles(c.Members, c.Members*launch.FilesPerProcess, "members"); err != nil {
		return err
	}
	if c.GNU {
		return checkGNU()
	}
	return nil
}

// phases are those of a sort, in order. A process is killed in each.
func phases() []string { return []string{"sample", "exchange", "sort", "write"} }

// Runs is how many jobs are run, in all: without a failure, and with one in each phase,
// run through and started again.
func (c *Config) Runs() int { return c.Trials * (1 + 2*len(phases())) }

// Result is what was measured. Times are medians.
type Result struct {
	Records int `json:"records"`
	Bytes   int `json:"bytes"`
	Members int `json:"members"`
	Trials  int `json:"trials"`
	// Job is how long a job takes without a failure, from before its first process starts
	// until its last one has ended, and JobCPU the processor time of its processes.
	Job    float64 `json:"job_p50_ms"`
	JobCPU float64 `json:"job_cpu_p50_ms"`
	// GNU and GNUCPU are the same of GNU sort, and OfGNU is Job divided by GNU.
	GNU    float64       `json:"gnu_p50_ms,omitempty"`
	GNUCPU float64       `json:"gnu_cpu_p50_ms,omitempty"`
	OfGNU  float64       `json:"of_gnu,omitempty"`
	Killed []PhaseResult `json:"killed"`
}

// PhaseResult is what a process costs that is killed in the middle of a phase: how much
// longer the job takes than without a failure. A single run that something else has disturbed
// would count twice in a difference of two runs, so this one is of medians.
type PhaseResult struct {
	Phase      string  `json:"phase"`
	RunThrough float64 `json:"run_through_lost_ms"`
	Restart    float64 `json:"restart_lost_ms"`
	// Ratio is RunThrough divided by Restart.
	Ratio float64 `json:"ratio"`
	// Equal reports whether the output was that without a failure, in all trials.
	Equal bool `json:"equal"`
}

// usage is how long something took, and the processor time for it.
type usage struct{ wall, cpu time.Duration }

// trial is what one trial has measured.
type trial struct {
	clean, gnu usage
	killed     []killedPhase // by phase
}

type killedPhase struct {
	runThrough, restart time.Duration
	equal               bool
}

// result summarizes trials.
func (c *Config) result(trials []trial) Result {
	r := Result{Records: c.Records, Bytes: c.Records * recordSize, Members: c.Members, Trials: len(trials)}
	if len(trials) == 0 {
		return r
	}
	median := func(of func(*trial) time.Duration) float64 {
		var all []time.Duration
		for i := range trials {
			all = append(all, of(&trials[i]))
		}
		slices.Sort(all)
		return bench.Millis(bench.Percentile(all, 50))
	}
	r.Job = median(func(t *trial) time.Duration { return t.clean.wall })
	r.JobCPU = median(func(t *trial) time.Duration { return t.clean.cpu })
	if c.GNU {
		r.GNU = median(func(t *trial) time.Duration { return t.gnu.wall })
		r.GNUCPU = median(func(t *trial) time.Duration { return t.gnu.cpu })
		r.OfGNU = bench.Round(r.Job/r.GNU, 3)
	}
	for i, phase := range phases() {
		p := PhaseResult{
			Phase:      phase,
			RunThrough: bench.Round(median(func(t *trial) time.Duration { return t.killed[i].runThrough })-r.Job, 3),
			Restart:    bench.Round(median(func(t *trial) time.Duration { return t.killed[i].restart })-r.Job, 3),
			Equal:      !slices.ContainsFunc(trials, func(t trial) bool { return !t.killed[i].equal }),
		}
		p.Ratio = bench.Round(p.RunThrough/p.Restart, 3)
		r.Killed = append(r.Killed, p)
	}
	return r
}
