package membership

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// Config describes a member and its first view.
type Config struct {
	// Self is this member. View is the view to begin with, and holds Self: the
	// first view of the group, or the one in the [Answer] to a joiner.
	Self Member
	View View
	// Log holds the message streams that views cut.
	Log Log
	// NoQuorum lets any number of members decide a view. It is safe only if no live
	// member is ever suspected, as under one launcher. Otherwise two halves of a
	// group may install views without each other.
	NoQuorum bool
	// Arbiter says that the group has an arbiter; see arbiter.go. All members have the same. The
	// driver asks it what NextClaim returns, and passes the answer to Judge.
	Arbiter bool

	// Durable says that the driver saves what Unsaved returns. A view that this member
	// has decided is then installed only after its own acceptance is saved: it may be the
	// only one, and then nothing was sent that would have waited for that.
	Durable bool

	// Decisions, from the [Answer] to a joiner, are passed on to members that are behind.
	Decisions Decisions

	// FlatThreshold is the largest group in which the coordinator contacts every
	// member directly instead of along a tree. If zero, [DefaultFlatThreshold]; if
	// negative, always the tree. All members should have the same.
	FlatThreshold int

	// BatchWindow is how long the coordinator waits for further joins and leaves
	// after the last one, so that a herd makes few views. It waits at most five times
	// as long after the first. If zero, 20 ms.
	BatchWindow protocol.Time
	// AttemptTimeout is how long an attempt that freezes roots waits for the next
	// acknowledgment. The first attempt waits a fifth of it, and a fifth more for each
	// doubling of the group beyond 64: it is not known yet whether all
	// participants answer. It waits for longer where answers take longer, and twice as
	// long after each failed attempt. If zero, 250 ms.
	AttemptTimeout protocol.Time
	// AckTimeout is how long a member that is not suspected may hold up a change by
	// not answering. Then the coordinator attempts the change without that member.
	// After twice as long the others attempt it without a silent coordinator. Where
	// answers take long, or the timers of this member are late, it is more. If zero, 5 s.
	AckTimeout protocol.Time
	// RetryInterval is the first retransmission timeout. It doubles with every
	// retransmission, up to 10 times as long. It should be the time of several
	// traversals, or retransmissions load a busy host further. If zero, 60 ms.
	RetryInterval protocol.Time
	// StatusInterval is how often a member sends its view number to another member, in
	// turn one of a few, so that no member stays behind for long. If zero, 1 s.
	StatusInterval protocol.Time
	// ProbeTimeout is how long a member whose identity another process claims may take
	// to show that it is alive. Then the other process replaces it. If zero, 1.5 s.
	ProbeTimeout protocol.Time
	// DoubtTimeout is how long a member may take to answer a probe of another one that
	// suspects to be cut off; see doubt.go. Where answers take long, or the timers of this member are late, it
	// is more. If zero, no member is asked.
	DoubtTimeout protocol.Time
	// JoinTimeout is how long a candidate waits for a view before it is refused. If
	// zero, 30 s.
	JoinTimeout protocol.Time

	// relays, if not nil, replaces the levels of relays: tests have small groups.
	relays []int
	// isQuorum, if not nil, replaces the majority rule: tests break the rule to see
	// that they notice.
	isQuorum func(v *View, s set) bool
}

// Times are in nanoseconds, as in a real-time driver.
const (
	millisecond protocol.Time = 1e6
	second                    = 1000 * millisecond
)

// DefaultFlatThreshold is the default of [Config.FlatThreshold]. Up to this size,
// waking relays takes longer than writing to every member. In the simulator 64
// members take as long with a tree as without if L is six times o, which is less
// than over TCP. And the coordinator's connections stay few.
const DefaultFlatThreshold = 64

// Limits on what a member remembers for others.
const (
	keptCommits   = 64      // for stragglers; a member further behind has to join again
	maxCandidates = 4096    // candidates at the coordinator
	maxPending    = 1024    // candidates that wait for an answer of this member
	addedBytes    = 1 << 18 // of joiners in one view; the others wait for the next
	maxBackoff    = 10      // times RetryInterval
	leaseFactor   = 34      // times RetryInterval: see lease
)

// check fills in the defaults and rejects an invalid config.
func (c *Config) check() error {
	if err := c.View.check(); err != nil {
		return err
	}
	if m, ok := c.View.Member(c.Self.Rank); !ok || m != c.Self {
		return fmt.Errorf("%w: rank %d (%q, incarnation %d) is not in its own view", ErrView, c.Self.Rank, c.Self.Identity,
			c.Self.Incarnation)
	}
	if c.NoQuorum && c.View.Members.observers() > 0 {
		return ErrObserverQuorum
	}
	if c.NoQuorum && c.Arbiter {
		return ErrArbiterQuorum
	}
	if c.Log == nil {
		return errors.New("membership: no Log given: a member without messages needs one that does nothing")
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
		{"ProbeTimeout", &c.ProbeTimeout, 1500 * millisecond},
		{"DoubtTimeout", &c.DoubtTimeout, 0},
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

// firstAttemptTimeout is the timeout of the first attempt at a view. Along a tree,
// acknowledgments take longer: a child's comes when its whole subtree has acknowledged,
// and the subtrees double. A host of many members that is busy, too, should not make
// several attempts of each change.
func (c *Config) firstAttemptTimeout(members int) protocol.Time {
	doublings := bits.Len(uint(members-1) / DefaultFlatThreshold)
	return max(min(c.AttemptTimeout/5*protocol.Time(1+doublings), c.AttemptTimeout), 1)
}
