package broadcast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Systems are what is measured, of [Systems] and External.
	Systems []string
	// External are systems that this package does not implement.
	External []System
	// Members is how many each system has; of them Dead are dead, for each
	// number in it.
	Members int
	Dead    []int
	// Size is that of a message, in bytes; Rounds how many are sent.
	Size, Rounds int
	// Time, if not zero, ends the rounds after so long, at least one of them
	// excepted.
	Time time.Duration
	// Rate sends messages back to back. Without, the next is sent when the last
	// has arrived.
	Rate bool
	// Processes makes every member a process. It runs Command, which is to call
	// [ServeMember], followed by a system's name, a message's size and a burst.
	Processes bool
	Command   []string
	// Footprint also counts the memory and goroutines of a member. It takes a
	// second for each group, and works only if members are in this process.
	Footprint bool
	// Seed chooses the dead, and the order of systems in each round.
	Seed uint64
	// Progress, if not nil, is called with how many rounds are done.
	Progress func(done int)
}

// Limits of what one machine can be asked.
const (
	maxMembers   = 4096
	maxProcesses = 512 // members in processes of their own, over all groups
	maxSize      = 64 << 20
)

// maxBursts is how many bursts of each system there are at rate.
const maxBursts = 5

// Systems returns the names of the systems that this package implements.
func Systems() []string { return []string{"pleach", "bare", "flat"} }

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 2 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 2 and %d", c.Members, maxMembers)
	case c.Size < 0 || c.Size > maxSize:
		return fmt.Errorf("--size %d: choose a number of bytes between 0 and %d", c.Size, maxSize)
	case c.Rounds < 1 || c.Rounds > bench.MaxRounds:
		return fmt.Errorf("--rounds %d: choose a number between 1 and %d", c.Rounds, bench.MaxRounds)
	case len(c.Dead) == 0:
		return fmt.Errorf("--dead: write at least one number, as in 0")
	}
	for i, k := range c.Dead {
		switch {
		case k < 0 || k > c.Members-2:
			return fmt.Errorf("--dead %d: of %d members at most %d can be dead, as the root and one to hear it live", k,
				c.Members, c.Members-2)
		case slices.Contains(c.Dead[:i], k):
			return fmt.Errorf("--dead: %d is there twice", k)
		}
	}
	for i, name := range c.Systems {
		_, known := builtinOf(name)
		_, external := c.external(name)
		if !known && !external || slices.Contains(c.Systems[:i], name) {
			return fmt.Errorf("--compare %s: choose %s, each once", name, strings.Join(Systems()[1:], " and "))
		}
		if external {
			if err := c.checkExternal(name); err != nil {
				return err
			}
		}
	}
	groups := len(c.Systems) * len(c.Dead)
	if c.Processes && c.Members*groups > maxProcesses {
		return fmt.Errorf("--processes: %d groups of %d members would be %d processes, choose fewer members or groups for at most %d", groups, c.Members, c.Members*groups, maxProcesses)
	}
	return c.checkOpenFiles()
}

// checkOpenFiles adds up what members of all groups take.
func (c *Config) checkOpenFiles() error {
	each := 0
	for _, name := range c.Systems {
		s, known := builtinOf(name)
		switch external, _ := c.external(name); {
		case c.Processes:
			each += launch.FilesPerProcess
		case known:
			each += s.files
		default:
			each += external.Files
		}
	}
	return bench.CheckOpenFiles(c.Members, each*len(c.Dead)*c.Members, "members, --dead or --compare")
}

// rounds returns how many messages follow each other back to back, and how many
// such bursts there are. Groups are interleaved burst by burst.
func (c *Config) rounds() (burst, bursts int) {
	if !c.Rate {
		return 1, c.Rounds
	}
	for bursts = maxBursts; c.Rounds%bursts != 0; bursts-- {
	}
	return c.Rounds / bursts, bursts
}

// Result is what was measured of one system with one number of dead.
type Result struct {
	System  string `json:"system"`
	Members int    `json:"members"`
	Dead    int    `json:"dead"`
	Size    int    `json:"size"`
	Rounds  int    `json:"rounds"`
	// Complete counts the rounds in which every live member got the message.
	// Times are of those only, and 0 if there are none: from before the root's
	// call until the last live member has the message in hand; at rate, of a
	// burst, divided by its length.
	Complete int     `json:"complete"`
	P10      float64 `json:"p10_us"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
	// PerSecond is how many complete rounds fit a second, one after the other
	// or, at rate, back to back.
	PerSecond float64 `json:"per_second"`
	// What a live member receives in a round, correction included, and the
	// processor's time for a round in all members together.
	Bytes    float64 `json:"bytes_per_member"`
	Messages float64 `json:"messages_per_member"`
	CPU      float64 `json:"cpu_us"`
	// What a member holds, heap and stacks together, if that was counted.
	Goroutines float64 `json:"goroutines_per_member,omitempty"`
	Memory     float64 `json:"bytes_of_memory_per_member,omitempty"`
}
