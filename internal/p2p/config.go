package p2p

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Config says who a member is and how much it may use. The zero value of every
// limit is a good default.
type Config struct {
	// Rank is this member's.
	Rank protocol.Rank
	// Session tells this start of the process from earlier ones: it must be
	// larger each time, and not 0.
	Session uint64

	// Alloc returns memory for a message of some bytes, with anything in it. Nil:
	// it is made anew.
	Alloc func(bytes int) []byte

	// SegmentSize is the longest piece a message is sent in: 129 KiB, so that
	// a power of two and a head make no two.
	SegmentSize int
	// WindowBytes is how much may be on its way to one member: 4 MiB.
	WindowBytes int
	// QueueBytes is how much may wait for one member, with what is on its way:
	// 64 MiB. An empty queue takes a message of any length.
	QueueBytes int
	// MaxMessage is the longest message: 1 GiB.
	MaxMessage int
}

// Times are in nanoseconds, as a driver in real time has them.
const millisecond protocol.Time = 1e6

const (
	// ackDelay is how long an acknowledgment waits for a frame to ride on.
	ackDelay = 10 * millisecond
	// A peer that is silent is asked how far it has come after firstAsk, then
	// after twice as long each time, up to lastAsk. firstAsk is several times
	// ackDelay: who only waits for company is not silent.
	minRTO = 50 * millisecond
	maxRTO = 1000 * millisecond
)

// longest is the longest message that a frame can announce.
const longest = 1 << 30

// check fills in the defaults and refuses what makes no sense.
func (c *Config) check() error {
	if c.Rank < 0 || c.Session == 0 {
		return fmt.Errorf("p2p: rank %d, session %d: the session must not be 0", c.Rank, c.Session)
	}
	for _, limit := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"SegmentSize", &c.SegmentSize, 129 << 10},
		{"WindowBytes", &c.WindowBytes, 4 << 20},
		{"QueueBytes", &c.QueueBytes, 64 << 20},
		{"MaxMessage", &c.MaxMessage, longest},
	} {
		if *limit.value < 0 || *limit.value > longest {
			return fmt.Errorf("p2p: %s is %d: choose 1 to %d", limit.name, *limit.value, longest)
		}
		if *limit.value == 0 {
			*limit.value = limit.standard
		}
	}
	if c.Alloc == nil {
		c.Alloc = func(bytes int) []byte { return make([]byte, bytes) }
	}
	return nil
}
