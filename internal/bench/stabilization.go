package bench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// Stabilization says what to measure of a group whose members are killed: how
// long the survivors take to agree on a view without the dead one. Every member is
// a process; who was killed is started anew, and joins again, before the next one
// is killed.
type Stabilization struct {
	// System is its name in results.
	System string
	// Members is how many there are, and Kills how often one of them is killed:
	// a random one that is not the coordinator or, with Coordinator, always the
	// coordinator, which is the lowest rank of the view.
	Members, Kills int
	Coordinator    bool
	// Seed chooses who is killed.
	Seed uint64
	// Limit is how long survivors may take. 0: 10 s.
	Limit time.Duration
	// Command starts a member: it is to call [ServeSurvivor].
	Command []string
	// Progress, if not nil, is told how many kills of all are done.
	Progress func(done int)
}

// Limits of what one machine can be asked. A view's report must fit what a pipe
// takes at once, however many ranks are missing.
const (
	maxSurvivors = 200
	maxKills     = 1_000_000
)

const defaultStabilizationLimit = 10 * time.Second

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Stabilization) Check() error {
	switch {
	case c.Members < 3 || c.Members > maxSurvivors:
		return fmt.Errorf("--members %d: choose a number between 3, of which two are a majority when one is dead, and %d", c.Members, maxSurvivors)
	case c.Kills < 1 || c.Kills > maxKills:
		return fmt.Errorf("--kills %d: choose a number between 1 and %d", c.Kills, maxKills)
	}
	return checkOpenFiles(&Config{Members: c.Members, Processes: true, Systems: []string{"pleach"}, Dead: []int{0}})
}

// StabilizationResult is what was measured of one system.
type StabilizationResult struct {
	System      string `json:"system"`
	Members     int    `json:"members"`
	Kills       int    `json:"kills"`
	Coordinator bool   `json:"coordinator"`
	// Processors is how many each member may use at a time: its share of the
	// host's, as who starts that many processes on one would give it, but at
	// least one; or what GOMAXPROCS says.
	Processors int `json:"processors"`
	// Complete counts the kills after which every survivor was in a view
	// without the dead one within the limit. Times are of those only, and 0 if
	// there are none: from before the kill until the last survivor's program has
	// the view.
	Complete int     `json:"complete"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	// Of those, from before the kill until the first survivor suspects the dead
	// one, and from then on: stabilization. 0 if the system does not tell.
	DetectionP50     float64 `json:"detection_p50_ms,omitempty"`
	StabilizationP50 float64 `json:"stabilization_p50_ms,omitempty"`
	StabilizationP99 float64 `json:"stabilization_p99_ms,omitempty"`
	// What all survivors together did meanwhile: processor time, and, on
	// average, how often one of their threads got a processor. 0 if the system
	// does not tell.
	CPUP50 float64 `json:"cpu_p50_ms,omitempty"`
	Turns  int     `json:"turns,omitempty"`
	// Views counts view changes, those by which the dead came back included.
	// Evicted counts members that the others went on without though they lived.
	Views   uint64 `json:"views,omitempty"`
	Evicted int    `json:"evicted"`

	kills []kill
}

// kill is what came of one. Times are [now]'s; 0: it did not happen.
type kill struct {
	began, suspected, installed uint64
	cpu                         time.Duration // of all survivors
	turns                       int
}

// result sums up.
func (c *Stabilization) result(kills []kill) StabilizationResult {
	var took, detection, stabilization, cpu []time.Duration
	turns := 0
	for _, k := range kills {
		if k.installed == 0 {
			continue
		}
		took = append(took, time.Duration(k.installed-k.began))
		cpu, turns = append(cpu, k.cpu), turns+k.turns
		if k.suspected > 0 {
			detection = append(detection, time.Duration(k.suspected-k.began))
			stabilization = append(stabilization, time.Duration(k.installed-k.suspected))
		}
	}
	slices.Sort(took)
	slices.Sort(detection)
	slices.Sort(stabilization)
	slices.Sort(cpu)
	return StabilizationResult{
		kills:  kills,
		System: c.System, Members: c.Members, Kills: len(kills), Coordinator: c.Coordinator, Processors: c.processors(), Complete: len(took),
		P50: millis(percentile(took, 50)), P99: millis(percentile(took, 99)), Max: millis(percentile(took, 100)),
		DetectionP50:     millis(percentile(detection, 50)),
		StabilizationP50: millis(percentile(stabilization, 50)), StabilizationP99: millis(percentile(stabilization, 99)),
		CPUP50: millis(percentile(cpu, 50)), Turns: turns / max(1, len(took)),
	}
}

// processors is how many each member may use at a time.
func (c *Stabilization) processors() int {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 {
		return n
	}
	return max(1, runtime.NumCPU()/max(1, c.Members))
}

func millis(d time.Duration) float64 { return round(float64(d.Nanoseconds())/1e6, 3) }
