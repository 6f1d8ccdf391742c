package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Collectives says what to measure of collectives: every operation at every size
// among every number of members, each of which is a process.
type Collectives struct {
	Members    []int
	Sizes      []int // in bytes, of what a member gives; Alltoall: gives each other one
	Operations []string
	// Rounds is how often each is measured, at most: fewer, but never fewer than
	// a few, where a round takes long.
	Rounds int
	// OpenMPI says to measure Open MPI too.
	OpenMPI bool
	// Command starts a member: it is to call [ServeCollectives].
	Command []string
	// Progress, if not nil, is told how many of [Collectives.Steps] are done.
	Progress func(done int)
}

// CollectiveOperations returns all there are.
func CollectiveOperations() []string {
	return []string{"broadcast", "reduce", "allreduce", "alltoall", "barrier"}
}

// What a call of ours does if a member dies, and so what it has to keep.
const (
	strengthRunThrough = "run-through"
	strengthPlain      = "plain"
)

// systemOpenMPI is Open MPI's name in results.
const systemOpenMPI = "openmpi"

// Limits of what one machine can be asked.
const (
	maxCollectiveMembers = 64
	maxCollectiveSize    = 64 << 20
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Collectives) Check() error {
	for i, n := range c.Members {
		if n < 2 || n > maxCollectiveMembers || slices.Contains(c.Members[:i], n) {
			return fmt.Errorf("--members %d: choose numbers between 2 and %d, each once", n, maxCollectiveMembers)
		}
	}
	for i, size := range c.Sizes {
		if size < 8 || size > maxCollectiveSize || size%8 != 0 || slices.Contains(c.Sizes[:i], size) {
			return fmt.Errorf("--sizes %d: choose multiples of 8 up to %d, each once", size, maxCollectiveSize)
		}
	}
	for i, op := range c.Operations {
		if !slices.Contains(CollectiveOperations(), op) || slices.Contains(c.Operations[:i], op) {
			return fmt.Errorf("--ops %s: choose %s, each once", op, strings.Join(CollectiveOperations(), ", "))
		}
	}
	switch {
	case len(c.Members) == 0 || len(c.Sizes) == 0 || len(c.Operations) == 0:
		return fmt.Errorf("--members, --sizes and --ops: choose at least one of each")
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return fmt.Errorf("--rounds %d: choose a number between 1 and %d", c.Rounds, maxRounds)
	}
	return checkOpenFiles(&Config{Members: slices.Max(c.Members), Processes: true, Systems: []string{"pleach"}, Dead: []int{0}})
}

// Steps is how many operations of a size there are to measure, in all.
func (c *Collectives) Steps() int { return len(c.Members) * len(c.matters()) }

// matter is one operation at one size.
type matter struct {
	operation string
	size      int
}

// matters are all that is measured among one number of members. A barrier has no
// size.
func (c *Collectives) matters() (all []matter) {
	for _, op := range c.Operations {
		if op == "barrier" {
			all = append(all, matter{op, 0})
			continue
		}
		for _, size := range c.Sizes {
			all = append(all, matter{op, size})
		}
	}
	return all
}

// CollectiveResult is what was measured of one system.
type CollectiveResult struct {
	System    string `json:"system"`
	Operation string `json:"operation"`
	Members   int    `json:"members"`
	Size      int    `json:"size"`
	// Strength is run-through or plain, and nothing for others' systems.
	Strength string `json:"strength,omitempty"`
	Rounds   int    `json:"rounds"`
	// A round's time is that of the member for which it took longest.
	P10 float64 `json:"p10_us"`
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// Ratio is of the medians, to Open MPI's of the same run. OfPlain is
	// run-through's to plain's. 0: there is none.
	Ratio   float64 `json:"ratio,omitempty"`
	OfPlain float64 `json:"of_plain,omitempty"`
}

// player is a system that takes turns with others at one matter.
type player struct {
	team     team
	system   string
	strength string
	took     []time.Duration
}

// collectiveResults sums up what all have done at a matter.
func collectiveResults(m matter, members int, all []*player) []CollectiveResult {
	results := make([]CollectiveResult, len(all))
	medians := make(map[string]float64)
	for i, c := range all {
		slices.Sort(c.took)
		results[i] = CollectiveResult{
			System: c.system, Operation: m.operation, Members: members, Size: m.size, Strength: c.strength, Rounds: len(c.took),
			P10: micros(percentile(c.took, 10)), P50: micros(percentile(c.took, 50)), P99: micros(percentile(c.took, 99)),
		}
		medians[c.system+c.strength] = results[i].P50
	}
	for i := range results {
		r := &results[i]
		if of := medians[systemOpenMPI]; of > 0 && r.System != systemOpenMPI {
			r.Ratio = round(r.P50/of, 3)
		}
		if of := medians["pleach"+strengthPlain]; of > 0 && r.Strength == strengthRunThrough {
			r.OfPlain = round(r.P50/of, 3)
		}
	}
	return results
}
