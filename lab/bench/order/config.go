// Package order compares one order of messages with the broadcast that carries it, and with
// puts to etcd. All members of Pleach are in this process, and talk over TCP; etcd's servers are
// processes.
package order

import (
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// The systems that can be measured.
const (
	Broadcast = "broadcast" // pleach.Group.Broadcast, to all others
	Order     = "order"     // package ordered
	Safe      = "safe"      // package ordered with Safe
	Etcd      = "etcd"      // puts to etcd, by its JSON gateway
)

// Config says what to measure.
type Config struct {
	// Members and Sizes are measured each with each.
	Members, Sizes []int
	// Systems are measured in turns. External are further ones, which have their names.
	Systems  []string
	External []System
	// Messages is how many messages are sent one after the other for times, and Time how long
	// all members send for the rate.
	Messages int
	Time     time.Duration
	// Progress, if not nil, is called with how many measurements are done.
	Progress func(done int)
}

// Result is what was measured of a system.
type Result struct {
	System  string `json:"system"`
	Members int    `json:"members"`
	Size    int    `json:"size"`
	// P50 and P99 are from before the call until the last member has the message; with etcd,
	// until the put returns.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// Rate is how many messages a second each member has received while all send.
	Rate float64 `json:"messages_per_second"`
}

// Limits of what one machine can be asked.
const (
	maxMembers  = 64
	maxSize     = 1 << 20
	maxMessages = 1_000_000
	maxTime     = time.Minute
	maxEtcd     = 9 // servers
)

// filesPerMember is how many files a member may have open: a connection to each other one, at
// both ends.
const filesPerMember = 2 * maxMembers

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	for _, n := range c.Members {
		if n < 2 || n > maxMembers {
			return fmt.Errorf("--members %d: choose numbers between 2 and %d", n, maxMembers)
		}
		if n > maxEtcd && slices.Contains(c.Systems, Etcd) {
			return fmt.Errorf("--members %d: etcd has at most %d servers here", n, maxEtcd)
		}
	}
	for _, n := range c.Sizes {
		if n < 8 || n > maxSize {
			return fmt.Errorf("--size %d: choose numbers of bytes between 8 and %d", n, maxSize)
		}
	}
	switch {
	case c.Messages < 1 || c.Messages > maxMessages:
		return fmt.Errorf("--messages %d: choose a number between 1 and %d", c.Messages, maxMessages)
	case c.Time <= 0 || c.Time > maxTime:
		return fmt.Errorf("--time %v: choose a time up to %v", c.Time, maxTime)
	}
	if slices.Contains(c.Systems, Etcd) {
		if _, err := exec.LookPath("etcd"); err != nil {
			return fmt.Errorf("--compare etcd: %w: install Debian's package etcd-server", err)
		}
	}
	most := slices.Max(c.Members)
	return bench.CheckOpenFiles(most, most*filesPerMember, "members")
}

// Steps is how many measurements there are.
func (c *Config) Steps() int { return len(c.Members) * len(c.Sizes) * len(c.Systems) }
