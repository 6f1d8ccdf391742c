package membership

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Config says who a member is and what it starts with. The zero value of every
// time is a good default.
type Config struct {
	// Self is this member, and View what it starts with: the group's first
	// view, or the one it was welcomed with. Self is in it.
	Self Member
	View View
	// Log is what views cut.
	Log Log
	// NoQuorum lets any number of members go on. It is safe only where nobody
	// is ever suspected who lives, as under one launcher: otherwise two halves
	// go on without each other.
	NoQuorum bool

	// FlatThreshold is for how many members who coordinates a change asks and tells each
	// one itself, rather than along a tree: [DefaultFlatThreshold]. Negative: always along
	// the tree. All members should have the same.
	FlatThreshold int

	// BatchWindow is how long the coordinator waits for more who join or leave after
	// the last one, so that a herd makes few views: 20 ms, and at most five
	// times as long after the first.
	BatchWindow protocol.Time
	// AttemptTimeout is how long an attempt that freezes roots waits for the next
	// acknowledgment: 250 ms at first, then doubled up to 1 s.
	AttemptTimeout protocol.Time
	// AckTimeout is how long a member that nobody suspects may hold up a change by
	// not answering: then the coordinator attempts it without that member. After
	// twice as long the others attempt it without a silent coordinator. If zero, 5 s.
	AckTimeout protocol.Time
	// RetryInterval is when what was not answered is sent again: after 60 ms at first,
	// then doubled up to 10 times as long. It is several traversals' time, or a
	// busy host would be made busier.
	RetryInterval protocol.Time
	// StatusInterval is how often a member tells another, in turn, which view it is in, so
	// that nobody stays behind for long: every second.
	StatusInterval protocol.Time
	// JoinTimeout is when a candidate gets its refusal if it could not be let in: 30 s.
	JoinTimeout protocol.Time

	// enough, if not nil, stands in for the rule of majorities: tests break it
	// to see that they notice.
	isQuorum func(v *View, s set) bool
}

// Times are in nanoseconds, as a driver in real time has them.
const (
	millisecond protocol.Time = 1e6
	second                    = 1000 * millisecond
)

// DefaultFlatThreshold is the largest group that is coordinated without a tree if nothing else
// is said: up to here, to wake relays takes longer than to write to everybody. In
// the simulator 64 members take as long with a tree as without where a message is
// under way for six times as long as it keeps its sender, which is less than over
// TCP. And the coordinator's connections stay few.
const DefaultFlatThreshold = 64

// Limits on what is remembered for others.
const (
	keptCommits   = 64      // for stragglers; who is further behind has to join anew
	maxCandidates = 4096    // who wait at the coordinator
	maxPending    = 1024    // who wait at this member for an answer
	addedBytes    = 1 << 18 // of joiners in one change; the rest waits for the next
	maxBackoff    = 10      // times RetryInterval
	leaseFactor   = 34      // times RetryInterval: how long others' reports and knocks count unless repeated
)

// check fills in the defaults and refuses what makes no sense.
func (c *Config) check() error {
	if err := c.View.check(); err != nil {
		return err
	}
	if m, ok := c.View.Member(c.Self.Rank); !ok || m != c.Self {
		return fmt.Errorf("%w: rank %d (%q, incarnation %d) is not in its own view", ErrView, c.Self.Rank, c.Self.Identity, c.Self.Incarnation)
	}
	if c.Log == nil {
		return errors.New("membership: no Log given: who has no messages to cut needs one that does nothing")
	}
	if c.FlatThreshold == 0 {
		c.FlatThreshold = DefaultFlatThreshold
	}
	for _, t := range []struct {
		name     string
		value    *protocol.Time
		standard protocol.Time
	}{
		{"BatchWindow", &c.BatchWindow, 20 * millisecond},
		{"AttemptTimeout", &c.AttemptTimeout, 250 * millisecond},
		{"AckTimeout", &c.AckTimeout, 5 * second},
		{"RetryInterval", &c.RetryInterval, 60 * millisecond},
		{"StatusInterval", &c.StatusInterval, second},
		{"JoinTimeout", &c.JoinTimeout, 30 * second},
	} {
		if *t.value < 0 {
			return fmt.Errorf("membership: %s is %d", t.name, *t.value)
		}
		if *t.value == 0 {
			*t.value = t.standard
		}
	}
	return nil
}

// maxBound is the longest an attempt may take however often it has failed.
func (c *Config) maxAttemptTimeout() protocol.Time { return 4 * c.AttemptTimeout }
