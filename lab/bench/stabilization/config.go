package stabilization

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what group to measure.
type Config struct {
	// System is its name in results.
	System string
	// Members is how many there are, and Kills how often one of them is killed: a
	// random one that is not the coordinator. With Coordinator, the coordinator
	// is killed each time, which is the lowest rank of the view.
	Members, Kills int
	Coordinator    bool
	// Seed chooses the members that are killed.
	Seed uint64
	// Limit is how long the survivors may take. If zero, 10 s.
	Limit time.Duration
	// Command starts a member. It is to call [Serve].
	Command []string
	// Progress, if not nil, is called with how many kills are done.
	Progress func(done int)
}

// Limits of what one machine can be asked. A view's report must fit what a pipe
// takes at once, however many ranks are missing.
const (
	maxMembers = 200
	maxKills   = 1_000_000
)

const defaultLimit = 10 * time.Second

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 3 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 3, of which two are a majority when one is dead, and %d",
			c.Members, maxMembers)
	case c.Kills < 1 || c.Kills > maxKills:
		return fmt.Errorf("--kills %d: choose a number between 1 and %d", c.Kills, maxKills)
	}
	return bench.CheckOpenFiles(c.Members, c.Members*launch.FilesPerProcess, "members")
}

// Result is what was measured of one system.
type Result struct {
	System      string `json:"system"`
	Members     int    `json:"members"`
	Kills       int    `json:"kills"`
	Coordinator bool   `json:"coordinator"`
	// Processors is how many each member may use at a time: its share of the
	// host's, at least one; or what GOMAXPROCS says.
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
	CPUP50     float64 `json:"cpu_p50_ms,omitempty"`
	Timeslices int     `json:"turns,omitempty"`
	// Views counts view changes, those by which the dead came back included.
	// Evicted counts live members that the others removed from the view.
	Views   uint64 `json:"views,omitempty"`
	Evicted int    `json:"evicted"`

	kills []kill
}

// kill is the outcome of one. Times are those of [bench.Now]; 0: it did not happen.
type kill struct {
	began, suspected, installed uint64
	cpu                         time.Duration // of all survivors
	timeslices                  int
}

// result summarizes kills.
func (c *Config) result(kills []kill) Result {
	var took, detection, stabilization, cpu []time.Duration
	timeslices := 0
	for _, k := range kills {
		if k.installed == 0 {
			continue
		}
		took = append(took, time.Duration(k.installed-k.began))
		cpu, timeslices = append(cpu, k.cpu), timeslices+k.timeslices
		if k.suspected > 0 {
			detection = append(detection, time.Duration(k.suspected-k.began))
			stabilization = append(stabilization, time.Duration(k.installed-k.suspected))
		}
	}
	slices.Sort(took)
	slices.Sort(detection)
	slices.Sort(stabilization)
	slices.Sort(cpu)
	return Result{
		kills:  kills,
		System: c.System, Members: c.Members, Kills: len(kills), Coordinator: c.Coordinator, Processors: c.processors(),
		Complete: len(took),
		P50:      bench.Millis(bench.Percentile(took, 50)), P99: bench.Millis(bench.Percentile(took, 99)),
		Max:              bench.Millis(bench.Percentile(took, 100)),
		DetectionP50:     bench.Millis(bench.Percentile(detection, 50)),
		StabilizationP50: bench.Millis(bench.Percentile(stabilization, 50)),
		StabilizationP99: bench.Millis(bench.Percentile(stabilization, 99)),
		CPUP50:           bench.Millis(bench.Percentile(cpu, 50)), Timeslices: timeslices / max(1, len(took)),
	}
}

// processors is how many each member may use at a time.
func (c *Config) processors() int {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 {
		return n
	}
	return max(1, runtime.NumCPU()/max(1, c.Members))
}
