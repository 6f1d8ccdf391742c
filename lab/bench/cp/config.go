package cp

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Members is how many processes get the file, the one that has it included, and Trials
	// how often.
	Members, Trials int
	// Size is the size of the file in bytes.
	Size int64
	// Dir is where the file and its copies are, Members+1 times Size in all. If empty, the
	// directory for temporary files.
	Dir string
	// Command starts a process that calls [Serve].
	Command []string
	// Progress, if not nil, is called with how many copies are done.
	Progress func(done int)
}

// Limits of what one machine can be asked.
const (
	maxMembers = 200
	maxTrials  = 1000
	maxSize    = 1 << 40
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 2 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 2 and %d", c.Members, maxMembers)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	case c.Size < 1 || c.Size > maxSize:
		return fmt.Errorf("--size %d: choose a number between 1 and %d", c.Size, int64(maxSize))
	}
	return bench.CheckOpenFiles(c.Members, c.Members*launch.FilesPerProcess, "members")
}

// Systems that are measured.
const (
	pleachSystem = "pleach"
	chainSystem  = "chain"
	flatSystem   = "flat"
)

func systems() []string { return []string{pleachSystem, chainSystem, flatSystem} }

// Copies is how many copies are made in all.
func (c *Config) Copies() int { return c.Trials * len(systems()) }

// Result is what was measured.
type Result struct {
	Members int   `json:"members"`
	Size    int64 `json:"size"`
	Trials  int   `json:"trials"`
	// Times are medians, from before the file is read until every process has confirmed
	// that it has it.
	Pleach float64 `json:"pleach_p50_ms"`
	Chain  float64 `json:"chain_p50_ms"`
	Flat   float64 `json:"flat_p50_ms"`
	// The processor time is that of all processes together.
	PleachCPU float64 `json:"pleach_cpu_p50_ms"`
	ChainCPU  float64 `json:"chain_cpu_p50_ms"`
	FlatCPU   float64 `json:"flat_cpu_p50_ms"`
	// OfChain and OfFlat are the medians of what Pleach's time is of theirs, in one trial.
	OfChain float64 `json:"of_chain"`
	OfFlat  float64 `json:"of_flat"`
}

// usage is how long a copy took, and the processor time of all processes.
type usage struct{ wall, cpu time.Duration }

// result summarizes trials, which have the usage of each system.
func (c *Config) result(trials []map[string]usage) Result {
	r := Result{Members: c.Members, Size: c.Size, Trials: len(trials)}
	if len(trials) == 0 {
		return r
	}
	median := func(of func(map[string]usage) float64) float64 {
		var all []float64
		for _, t := range trials {
			all = append(all, of(t))
		}
		slices.Sort(all)
		return bench.Round(all[(len(all)-1)/2], 3)
	}
	millis := func(system string) float64 {
		return median(func(t map[string]usage) float64 { return bench.Millis(t[system].wall) })
	}
	cpu := func(system string) float64 {
		return median(func(t map[string]usage) float64 { return bench.Millis(t[system].cpu) })
	}
	ratio := func(system string) float64 {
		return median(func(t map[string]usage) float64 { return float64(t[pleachSystem].wall) / float64(t[system].wall) })
	}
	r.Pleach, r.Chain, r.Flat = millis(pleachSystem), millis(chainSystem), millis(flatSystem)
	r.PleachCPU, r.ChainCPU, r.FlatCPU = cpu(pleachSystem), cpu(chainSystem), cpu(flatSystem)
	r.OfChain, r.OfFlat = ratio(chainSystem), ratio(flatSystem)
	return r
}
