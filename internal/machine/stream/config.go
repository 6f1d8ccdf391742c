package stream

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Config describes a member and its limits. The zero value of every limit selects its
// default.
type Config struct {
	// Rank is the rank of this member, among Size ranks.
	Rank, Size protocol.Rank
	// Incarnation distinguishes this start of the process from earlier ones. It must be
	// larger at each start.
	Incarnation uint64
	// View is the number of the member's first view, and Members are its members, which
	// the member keeps. If nil, all ranks. Start is the member's position in each
	// stream. It begins at the start of a stream that is not listed.
	View    uint64
	Members Members
	Start   []Position
	// Lead is how long after a message its correction starts, in experiments. If zero, that
	// follows measurements (lead.go).
	Lead protocol.Time
	// Shape is the shape of the tree. If zero, binomial.
	Shape topology.Shape

	// SegmentSize is the longest segment of a message. If zero, 64 KiB.
	SegmentSize int
	// InlineSize is the longest segment that an offer carries along. If zero, 1 KiB.
	InlineSize int
	// MaxMessage is the longest message. If zero, 1 GiB. It is below 4 GiB, because a
	// segment says in 32 bits how much of its message follows.
	MaxMessage int
	// KeepBytes is how much is kept to answer requests. Active roots share it, apart from
	// what some member may lack (store.go), and no stream has more. In a static group, each
	// root has it. If zero, 16 MiB. Three quarters of it are what all active roots together
	// may have in flight (window.go).
	KeepBytes int
	// InboxBytes is how much may wait for the program. If zero, 16 MiB. Beyond it, this
	// member acknowledges nothing more, so that the roots block.
	InboxBytes int
	// OutboxBytes is how much may wait to be sent as a root. If zero, 4 MiB. Beyond it,
	// Write returns [ErrBusy].
	OutboxBytes int
	// Replicate delivers what a replicated state needs in addition to the messages of others: the
	// messages of this member, in the order of its stream, and a notice where each view
	// begins ([Message.Begins]).
	Replicate bool
	// Echo makes Deliver return the messages of this member, too, in the order of its stream.
	Echo bool
	// Begins delivers a notice where each view begins ([Message.Begins]).
	Begins bool
	// AllTopics makes Deliver return the messages of every topic, too, in the order of
	// their streams. If false, those of topics without a subscription are dropped.
	AllTopics bool
	// Drop lets roots send even while this member's inbox is full. The member refuses
	// segments then, and loses what it does not pull in time.
	Drop bool
}

// Times are in nanoseconds, as drivers in real time count them.
const (
	microsecond protocol.Time = 1000
	millisecond               = 1000 * microsecond
)

// minRequested is how many segments the first request for a hole asks for, and
// maxRequested how many one request may ask for.
const (
	minRequested = 4
	maxRequested = 32
)

// check fills in the defaults and refuses invalid settings.
func (c *Config) check() error {
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
