package scale

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Members are the sizes of the groups.
	Members []int
	// Transport is "tcp" or "mem".
	Transport string
	// Kills are how many members die at once; each number is measured once at each size.
	Kills []Kills
	// Time is about how long the broadcasts and view changes of one size may take
	// together. Each step has at least one round.
	Time time.Duration
	// Size is that of a message, in bytes.
	Size int
	// Seed chooses the members that die.
	Seed uint64
	// Progress, if not nil, is called with how many of [Config.Steps] are done, and what
	// is done next.
	Progress func(done int, next string)
}

// Kills is a number of members or a percentage of them.
type Kills struct {
	Number  int
	Percent bool
}

// ParseKills reads a list such as 1,1%.
func ParseKills(list string) (kills []Kills, err error) {
	for text := range strings.SplitSeq(list, ",") {
		number, percent := strings.CutSuffix(text, "%")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf(
				"--kills %s: %q is neither a number of members nor a percentage of them: write them with commas between them, as in 1,1%%", list, text)
		}
		kills = append(kills, Kills{n, percent})
	}
	return kills, nil
}

func (k Kills) String() string {
	if k.Percent {
		return strconv.Itoa(k.Number) + "%"
	}
	return strconv.Itoa(k.Number)
}

// of is how many of so many members die, at least one.
func (k Kills) of(members int) int {
	if k.Percent {
		return max(1, members*k.Number/100)
	}
	return k.Number
}

// Limits of what one machine can be asked.
const (
	minMembers = 4
	maxMembers = 16384
	minSize    = 8 // a message is known by its number
	maxSize    = 1 << 20
)

// Transports are what members are connected by.
var Transports = []string{"tcp", "mem"}

// What a member takes of the limit of open files: its listener, both ends of its
// connections, of which a view change opens some more, and what it takes as a member
// of the bare tree.
const (
	filesOfMember = 13
	filesOfBare   = 3
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case len(c.Members) == 0:
		return fmt.Errorf("--members: write at least one number, as in 64")
	case !slices.Contains(Transports, c.Transport):
		return fmt.Errorf("--transport %s: choose %s", c.Transport, strings.Join(Transports, " or "))
	case c.Size < minSize || c.Size > maxSize:
		return fmt.Errorf("--size %d: choose a number of bytes between %d and %d", c.Size, minSize, maxSize)
	case c.Time <= 0:
		return fmt.Errorf("--time %v: choose a time above 0", c.Time)
	case len(c.Kills) == 0:
		return fmt.Errorf("--kills: write at least one number, as in 1")
	}
	for i, members := range c.Members {
		if members < minMembers || members > maxMembers {
			return fmt.Errorf("--members %d: choose a number between %d and %d", members, minMembers, maxMembers)
		}
		if slices.Contains(c.Members[:i], members) {
			return fmt.Errorf("--members: %d is there twice", members)
		}
		for _, k := range c.Kills {
			if dead := k.of(members); 2*dead >= members {
				return fmt.Errorf("--kills %v: of %d members fewer than half may die at once, as a majority decides", k, members)
			}
		}
	}
	return nil
}

// checkOpenFiles says whether a size ends at the limit of open files.
func (c *Config) checkOpenFiles(members int) error {
	if c.Transport != "tcp" {
		return nil
	}
	return bench.CheckMembers(members, filesOfMember+filesOfBare, "members, or --transport mem")
}

// Steps is how many steps of progress there are.
func (c *Config) Steps() int { return len(c.Members) * c.stepsOfSize() }

// stepsOfSize are start, footprint, idle time, broadcasts, each number of kills, joins.
func (c *Config) stepsOfSize() int { return 5 + len(c.Kills) }

// progress counts the steps of one size.
type progress struct {
	config  *Config
	members int
	done    int // of all sizes
}

// begin says what is done next.
func (p *progress) begin(step string) {
	if p.config.Progress != nil {
		p.config.Progress(p.done, fmt.Sprintf("%d members: %s", p.members, step))
	}
	p.done++
}
