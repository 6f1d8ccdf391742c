package shard

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/internal/services/tokens"
)

// Config configures [New]. The zero value of each setting is a good default. All members use
// the same Partitions, Weight, Lease and HandoffTimeout: see [SettingsError].
type Config struct {
	// Name distinguishes several Shards of one group. It has at most 100 bytes. If empty,
	// "shards".
	Name string
	// Partitions is the number of partitions that keys are divided into, at most 65,536. If
	// zero, 1,024. Shares differ by chance: with n partitions each, by about the root of n.
	Partitions int
	// Weight returns the weight of a member, from 0, which owns nothing, to 100. It depends
	// on nothing but the member, as on its Meta. If nil, every member has weight 1.
	Weight func(pleach.Member) int
	// Lease is how long a new owner waits for an old one that has not released a partition
	// and is not in the view. An owner that no majority answers stops within four fifths
	// of it. If zero, 1 s. If negative, new owners do not wait, and owners exclude
	// each other by their tokens alone.
	Lease time.Duration
	// HandoffTimeout is how long an owner may take to finish its work and to release a
	// partition that moves. Then its contexts end. If zero, 1 s.
	HandoffTimeout time.Duration
	// Release is called when a partition moves to another member and the work on it has ended,
	// before the new owner begins, for instance to save state that the new owner needs. Its context ends with
	// HandoffTimeout. It is not called when the partition is lost otherwise. If nil, nothing is.
	Release func(ctx context.Context, partition int, token uint64)
	// TokenFloor returns a lower bound for all tokens, such as the time of day. New calls it
	// once. The first members use the highest of their bounds; a member that joins them uses the
	// same bound. So tokens keep rising even if all processes restart.
	// If nil, the time of day in milliseconds.
	TokenFloor func() uint64
	// DataDir is a directory in which this process saves an upper bound of all tokens so far:
	// tokens then keep rising even if clocks were set back meanwhile. If empty, the data
	// directory of the group.
	DataDir string
}

const (
	defaultName       = "shards"
	defaultPartitions = 1024
	defaultLease      = time.Second
	defaultHandoff    = time.Second
	maxName           = 100
	maxPartitions     = 1 << 16
	maxTime           = time.Hour
	idlePeriod        = 200 * time.Millisecond // between looks at missing reports, without a lease
)

// complete checks a config and fills in the defaults.
func (c *Config) complete() error {
	for _, check := range []struct {
		field  string
		wrong  bool
		reason string
	}{
		{"Name", len(c.Name) > maxName, fmt.Sprintf("has %d bytes: %d at most", len(c.Name), maxName)},
		{"Partitions", c.Partitions < 0 || c.Partitions > maxPartitions, fmt.Sprintf("is %d: choose 1 to %d", c.Partitions,
			maxPartitions)},
		{"Lease", c.Lease > maxTime, fmt.Sprintf("is %v: %v at most", c.Lease, maxTime)},
		{"HandoffTimeout", c.HandoffTimeout < 0 || c.HandoffTimeout > maxTime, fmt.Sprintf("is %v: choose a time up to %v",
			c.HandoffTimeout, maxTime)},
	} {
		if check.wrong {
			return &pleach.ConfigError{Field: check.field, Reason: check.reason}
		}
	}
	if c.Name == "" {
		c.Name = defaultName
	}
	if c.Partitions == 0 {
		c.Partitions = defaultPartitions
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.HandoffTimeout == 0 {
		c.HandoffTimeout = defaultHandoff
	}
	if c.TokenFloor == nil {
		c.TokenFloor = tokens.Clock
	}
	c.Lease = max(c.Lease, 0)
	return nil
}

// floor returns the number that tokens are above, by TokenFloor and by the disk.
func (c *Config) floor(mark *tokens.Mark) (uint64, error) {
	floor := max(c.TokenFloor(), mark.Floor())
	if floor > handoff.MaxFloor {
		return 0, &pleach.ConfigError{Field: "TokenFloor", Reason: fmt.Sprintf("is %d: %d at most", floor,
			uint64(handoff.MaxFloor))}
	}
	return floor, nil
}

// period is how often a member asks for a majority, and for reports that it lacks.
func (c *Config) period() time.Duration {
	if c.Lease == 0 {
		return idlePeriod
	}
	return c.Lease / 5
}

// members returns the members of a view with their weights.
func (c *Config) members(v pleach.View) []handoff.Member {
	list := make([]handoff.Member, 0, v.Size())
	for _, m := range v.Members() {
		weight := 1
		if c.Weight != nil {
			weight = min(max(c.Weight(m), 0), handoff.MaxWeight)
		}
		list = append(list, handoff.Member{Process: processOf(m), ID: m.ID, Weight: weight})
	}
	return list
}

func processOf(m pleach.Member) handoff.Process {
	return handoff.Process{Rank: m.Rank, Incarnation: m.Incarnation}
}
