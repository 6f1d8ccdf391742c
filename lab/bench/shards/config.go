package shards

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// Config says what to measure.
type Config struct {
	// Members share Partitions.
	Members, Partitions int
	// Lease is that of [shard.Config]; negative: there is none.
	Lease time.Duration
	// Trials is how many members are killed, one after the other, each started again.
	Trials int
	// Clients make requests while all members are restarted, one after the other.
	Clients int
	// Seed chooses the members that are killed, and keys.
	Seed uint64
	// Progress, if not nil, is called with the number of steps done, and the next one.
	Progress func(done int, what string)
}

// Limits of what one process can be asked.
const (
	maxMembers    = 200
	maxPartitions = 1 << 16
	maxTrials     = 10_000
	maxClients    = 1000
	maxLease      = time.Minute
)

// Steps is how many steps Run takes: a kill each, and the restart of each member.
func (c *Config) Steps() int { return c.Trials + c.Members }

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Members < 3 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 3, of which two are a majority, and %d", c.Members,
			maxMembers)
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return fmt.Errorf("--partitions %d: choose a number between 1 and %d", c.Partitions, maxPartitions)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	case c.Clients < 1 || c.Clients > maxClients:
		return fmt.Errorf("--clients %d: choose a number between 1 and %d", c.Clients, maxClients)
	case c.Lease > maxLease:
		return fmt.Errorf("--lease %v: choose a time up to %v, or -1s for none", c.Lease, maxLease)
	}
	return bench.CheckOpenFiles(c.Members, 16*c.Members, "members")
}

// Result is what was measured.
type Result struct {
	Members    int     `json:"members"`
	Partitions int     `json:"partitions"`
	LeaseMS    float64 `json:"lease_ms"`
	Kills      int     `json:"kills"`
	// The times from the death of a member until each of its partitions is owned again.
	P50 float64 `json:"owned_again_p50_ms"`
	P99 float64 `json:"owned_again_p99_ms"`
	Max float64 `json:"owned_again_max_ms"`
	// MovedKill is how many partitions were begun after a death, for each that the dead member
	// owned, and MovedJoin the same for each that a joiner gets.
	MovedKill float64 `json:"moved_of_minimum_kill"`
	MovedJoin float64 `json:"moved_of_minimum_join"`
	// Largest is the largest share of a member, in shares of 1/Members.
	Largest float64 `json:"largest_share"`
	// Restarts of members, with Requests meanwhile. Retried were those that had no owner, or
	// another one, at the first try; all were served eventually.
	Restarts   int     `json:"restarts"`
	Requests   int     `json:"requests"`
	Retried    int     `json:"retried"`
	RequestP99 float64 `json:"request_p99_ms"`
	RequestMax float64 `json:"request_max_ms"`
	// TwoOwners counts requests that began while another process served the partition,
	// SameToken those by a token that another process has used, and OldToken those by a token
	// below one that was used before.
	TwoOwners int `json:"served_by_two_owners"`
	SameToken int `json:"same_token"`
	OldToken  int `json:"old_token"`
}

// Wrong is how many requests two owners have served.
func (r *Result) Wrong() int { return r.TwoOwners + r.SameToken + r.OldToken }

// times fills in how soon partitions were owned again.
func (r *Result) times(again []time.Duration) {
	slices.Sort(again)
	r.P50, r.P99 = bench.Millis(bench.Percentile(again, 50)), bench.Millis(bench.Percentile(again, 99))
	r.Max = bench.Millis(bench.Percentile(again, 100))
}
