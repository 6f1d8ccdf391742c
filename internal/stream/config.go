package stream

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Config says who a member is and how much it may use. The zero value of every
// limit is a good default.
type Config struct {
	// Rank is this member's, of Size members.
	Rank, Size protocol.Rank
	// Incarnation tells this start of the process from earlier ones: it must be
	// larger each time.
	Incarnation uint64
	// View is the number of the view it begins with, and Members who is in it,
	// in ascending order; nil: all ranks. Start is where it begins in each
	// stream: at the beginning of those that are not in it.
	View    uint64
	Members []MemberID
	Start   []Position
	// Shape is the tree's; binomial if zero.
	Shape topology.Shape

	// SegmentSize is the longest piece a message is sent in: 64 KiB.
	SegmentSize int
	// InlineSize is the longest segment that a correction message carries
	// instead of only offering it: 1 KiB.
	InlineSize int
	// MaxMessage is the longest message: 1 GiB. It is below 4 GiB, because a
	// segment says in 32 bits how much of its message follows.
	MaxMessage int
	// KeepBytes is how much of each root's stream is kept to mend others'
	// holes: 16 MiB. Who falls further behind loses messages, and is told.
	KeepBytes int
	// InboxBytes is how much may wait to be taken by the program: 16 MiB. While
	// more waits, what arrives is passed on but not taken, and asked for later.
	InboxBytes int
	// OutboxBytes is how much may wait to be sent as a root: 4 MiB.
	OutboxBytes int
}

// The shortest and longest time that delayed correction waits, and how long
// before anything has been measured.
const (
	minDelay     = 300 * microsecond
	maxDelay     = 100 * millisecond
	initialDelay = 5 * millisecond
)

// Times are in nanoseconds, as a driver in real time has them.
const (
	microsecond protocol.Time = 1000
	millisecond               = 1000 * microsecond
)

// A correction begins as long after a message as its neighbors' messages are
// usually apart, within minLead and maxLead: the tree has its way first. pause is
// how long after one correction of a stream the next may begin: what comes
// meanwhile is mended at once.
const (
	minLead            = 1 * millisecond
	maxLead            = 10 * millisecond
	correctionInterval = 2 * millisecond
)

// askAtOnce is how many segments one request asks for.
const maxRequested = 32

// check fills in the defaults and refuses what makes no sense.
func (c *Config) check() error {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("stream: rank %d of %d members", c.Rank, c.Size)
	}
	if c.Members == nil {
		c.Members = allRanks(c.Size)
	}
	for _, limit := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"SegmentSize", &c.SegmentSize, 64 << 10},
		{"InlineSize", &c.InlineSize, 1 << 10},
		{"MaxMessage", &c.MaxMessage, 1 << 30},
		{"KeepBytes", &c.KeepBytes, 16 << 20},
		{"InboxBytes", &c.InboxBytes, 16 << 20},
		{"OutboxBytes", &c.OutboxBytes, 4 << 20},
	} {
		if *limit.value < 0 {
			return fmt.Errorf("stream: %s is %d", limit.name, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.standard
		}
	}
	if int64(c.MaxMessage) > math.MaxUint32 {
		return fmt.Errorf("stream: MaxMessage is %d: choose at most %d", c.MaxMessage, uint32(math.MaxUint32))
	}
	return nil
}
