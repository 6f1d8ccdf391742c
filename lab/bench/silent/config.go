package silent

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Systems are the names of the systems, which Command's process knows.
	Systems []string
	// Command starts a member. It is to call [Serve] with the system's name, which is
	// added as its last argument.
	Command []string
	// Members is how many there are, and Silent the ranks that are stopped, all at once.
	Members int
	Silent  []int
	// Interval is the time between two messages. If zero, the root broadcasts at full rate.
	Interval time.Duration
	// Size is that of a message, in bytes.
	Size int
	// Before is how long the root broadcasts before members are stopped, and After how long
	// it continues then. Messages sent after the view without them are not evaluated.
	Before, After time.Duration
	// Runs is how often each system is measured.
	Runs int
	// Progress, if not nil, is called with how many runs are done, of all systems.
	Progress func(done int)
}

// What one machine can be asked.
const (
	maxMembers = 200
	maxRuns    = 1000
	maxTime    = time.Minute
	leastSize  = 16 // the time and the number of a message
	maxSize    = 1 << 20
)

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 3 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 3 and %d", c.Members, maxMembers)
	case len(c.Silent) == 0 || len(c.Silent) > c.Members-2:
		return fmt.Errorf("--silent: name at least one rank, and leave one live member besides the root")
	case c.Size < leastSize || c.Size > maxSize:
		return fmt.Errorf("--size %d: choose a number of bytes between %d and %d", c.Size, leastSize, maxSize)
	case c.Runs < 1 || c.Runs > maxRuns:
		return fmt.Errorf("--runs %d: choose a number between 1 and %d", c.Runs, maxRuns)
	case c.Interval < 0 || c.Interval > time.Second:
		return fmt.Errorf("--interval %v: choose a time up to 1s", c.Interval)
	case c.Before < time.Second || c.Before > maxTime || c.After < time.Second || c.After > maxTime:
		return fmt.Errorf("choose times between 1s and %v before and after members are stopped", maxTime)
	}
	for i, rank := range c.Silent {
		if rank < 1 || rank >= c.Members || slices.Contains(c.Silent[:i], rank) {
			return fmt.Errorf("--silent: %d is not one of the ranks 1 to %d, named once", rank, c.Members-1)
		}
	}
	return bench.CheckOpenFiles(c.Members, c.Members*launch.FilesPerProcess, "members")
}

// live lists the live ranks without the root.
func (c *Config) live() (ranks []int) {
	for rank := 1; rank < c.Members; rank++ {
		if !slices.Contains(c.Silent, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Result is what one run has measured of a system. Times are from before the root's call
// until the last live member's program has the message, in milliseconds.
type Result struct {
	System  string `json:"system"`
	Run     int    `json:"run"`
	Members int    `json:"members"`
	Silent  []int  `json:"silent"`
	Size    int    `json:"size"`
	// ViewMS is when the last live member's program had a view without the silent ones,
	// after they were stopped. It is 0 if there was none, or the system has no views.
	ViewMS float64 `json:"view_ms"`

	// At a pace: the median before, and of the messages sent after the stop and before
	// the view the first, the median and the worst. Sent is how many they are, and
	// Incomplete how many of them some live member never got; those have no time.
	BeforeMS   float64 `json:"before_ms"`
	FirstMS    float64 `json:"first_ms"`
	MedianMS   float64 `json:"median_ms"`
	WorstMS    float64 `json:"worst_ms"`
	Sent       int     `json:"sent"`
	Incomplete int     `json:"incomplete"`
	// MessagesBefore and MessagesAfter are what a live member received per broadcast,
	// with everything that the system does besides; 0 if it does not tell.
	MessagesBefore float64 `json:"messages_before"`
	MessagesAfter  float64 `json:"messages_after"`

	// At full rate: messages a second at the slowest live member before the stop, and from
	// then until the view, and how many of those sent some live member never gets.
	RateBefore float64 `json:"rate_before"`
	RateAfter  float64 `json:"rate_after"`
	Lost       uint64  `json:"lost"`
}
