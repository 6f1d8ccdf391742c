package collectives

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure: every operation at every size among every number of
// members, each of which is a process.
type Config struct {
	Members    []int
	Sizes      []int // in bytes, of a member's input; of Alltoall and Exchange, for each other member
	Operations []string
	// Rounds is how often each is measured, at most. Where a round takes long,
	// there are fewer.
	Rounds int
	// OpenMPI says to measure Open MPI too, over TCP and over its shared memory.
	OpenMPI bool
	// Command starts a member: it is to call [Serve].
	Command []string
	// Progress, if not nil, is called with how many of [Config.Steps] are done.
	Progress func(done int)
}

// Operations returns the names of all operations.
func Operations() []string {
	return []string{"broadcast", "reduce", "allreduce", "alltoall", "barrier", "exchange", "split"}
}

// Failure modes of calls, as results name them: a call that only reports failures
// keeps nothing for takeovers.
const (
	modeRunThrough = "run-through"
	modeReport     = "plain"
)

// Names of Open MPI in results: over TCP, and over its shared memory.
const (
	systemOpenMPI       = "openmpi"
	systemOpenMPIShared = "openmpi-shm"
)

// Limits of what one machine can be asked.
const (
	maxMembers = 128
	maxSize    = 64 << 20
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	for i, n := range c.Members {
		if n < 2 || n > maxMembers || slices.Contains(c.Members[:i], n) {
			return fmt.Errorf("--members %d: choose numbers between 2 and %d, each once", n, maxMembers)
		}
	}
	for i, size := range c.Sizes {
		if size < 8 || size > maxSize || size%8 != 0 || slices.Contains(c.Sizes[:i], size) {
			return fmt.Errorf("--sizes %d: choose multiples of 8 up to %d, each once", size, maxSize)
		}
	}
	for i, op := range c.Operations {
		if !slices.Contains(Operations(), op) || slices.Contains(c.Operations[:i], op) {
			return fmt.Errorf("--operations %s: choose %s, each once", op, strings.Join(Operations(), ", "))
		}
	}
	switch {
	case len(c.Members) == 0 || len(c.Sizes) == 0 || len(c.Operations) == 0:
		return fmt.Errorf("--members, --sizes and --operations: choose at least one of each")
	case c.Rounds < 1 || c.Rounds > bench.MaxRounds:
		return fmt.Errorf("--rounds %d: choose a number between 1 and %d", c.Rounds, bench.MaxRounds)
	}
	members := slices.Max(c.Members)
	return bench.CheckOpenFiles(members, members*launch.FilesPerProcess, "members")
}

// Steps is how many cases there are to measure, in all.
func (c *Config) Steps() int { return len(c.Members) * len(c.testcases()) }

// testcase is one operation at one size.
type testcase struct {
	operation string
	size      int
}

// testcases are the cases among one number of members. A barrier and a split have no size.
func (c *Config) testcases() (all []testcase) {
	for _, op := range c.Operations {
		if op == "barrier" || op == "split" {
			all = append(all, testcase{op, 0})
			continue
		}
		for _, size := range c.Sizes {
			all = append(all, testcase{op, size})
		}
	}
	return all
}

// Result is what was measured of one system.
type Result struct {
	System    string `json:"system"`
	Operation string `json:"operation"`
	Members   int    `json:"members"`
	Size      int    `json:"size"`
	// FailureMode is run-through, or plain for calls that report failures. Other
	// systems have none.
	FailureMode string `json:"strength,omitempty"`
	// Rounds are those that were measured one after the other, without the first ones of
	// each block.
	Rounds int `json:"rounds"`
	// A round's time is that of the member for which it took longest.
	P10 float64 `json:"p10_us"`
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// IdleP50 is the median of the first rounds of blocks, before which all members
	// were idle.
	IdleP50 float64 `json:"idle_p50_us"`
	// Processor is the processor time that all members use in a round and its barrier.
	Processor float64 `json:"cpu_us"`
	// Ratio is the ratio of medians to Open MPI over TCP in the same run, OfShared that
	// to Open MPI over its shared memory, OfReport that of run-through to plain. 0:
	// there is none.
	Ratio    float64 `json:"ratio,omitempty"`
	OfShared float64 `json:"of_shared_memory,omitempty"`
	OfReport float64 `json:"of_plain,omitempty"`
}

// measured is what a system has measured: rounds, each as long as it took the slowest
// member, and the processor time of all members in all of them.
type measured struct {
	took      []time.Duration
	processor time.Duration
}

// systemUnderTest is a system that is measured, interleaved with others, in one
// case.
type systemUnderTest struct {
	runner runner
	system string
	mode   string
	steady []time.Duration // rounds
	idle   []time.Duration // first rounds
	rounds int             // all that processor is of
	used   time.Duration   // of the processor
}

// add takes in a block, whose rounds count after some to settle.
func (c *systemUnderTest) add(m measured, settle int) {
	c.idle = append(c.idle, m.took[0])
	c.steady = append(c.steady, m.took[settle:]...)
	c.rounds += len(m.took)
	c.used += m.processor
}

// summarize makes the results of a case.
func summarize(m testcase, members int, all []*systemUnderTest) []Result {
	results := make([]Result, len(all))
	medians := make(map[string]float64)
	for i, c := range all {
		slices.Sort(c.steady)
		slices.Sort(c.idle)
		results[i] = Result{
			System: c.system, Operation: m.operation, Members: members, Size: m.size, FailureMode: c.mode, Rounds: len(c.steady),
			P10: bench.Micros(bench.Percentile(c.steady, 10)), P50: bench.Micros(bench.Percentile(c.steady, 50)),
			P99:       bench.Micros(bench.Percentile(c.steady, 99)),
			IdleP50:   bench.Micros(bench.Percentile(c.idle, 50)),
			Processor: bench.Micros(c.used / time.Duration(max(1, c.rounds))),
		}
		medians[c.system+c.mode] = results[i].P50
	}
	ratio := func(r *Result, to string) float64 {
		if medians[to] == 0 {
			return 0
		}
		return bench.Round(r.P50/medians[to], 3)
	}
	for i := range results {
		r := &results[i]
		if r.System != "pleach" {
			continue
		}
		r.Ratio, r.OfShared = ratio(r, systemOpenMPI), ratio(r, systemOpenMPIShared)
		if r.FailureMode == modeRunThrough {
			r.OfReport = ratio(r, "pleach"+modeReport)
		}
	}
	return results
}
