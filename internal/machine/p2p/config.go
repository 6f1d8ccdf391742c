package p2p

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Config configures an [Endpoint]. Every limit has a default.
type Config struct {
	// Rank is the rank of this member.
	Rank protocol.Rank

	// Alloc returns memory for a message of so many bytes; its content does not
	// matter. If nil, make is used.
	Alloc func(bytes int) []byte

	// SegmentSize is the longest segment. If zero, 129 KiB, so that a body of a
	// power of two and its head fit into as few segments as the body alone.
	SegmentSize int
	// WindowBytes bounds the bytes in flight to one member. If zero, 4 MiB.
	WindowBytes int
	// QueueBytes bounds the bytes that wait for one member, including those in
	// flight. Beyond it, Send returns [ErrBusy]. An empty queue takes a message of
	// any length. If zero, 64 MiB.
	QueueBytes int
	// MaxMessage is the longest message. Send returns an error for a longer one.
	// If zero, 1 GiB.
	MaxMessage int
}

// millisecond is in the unit of a real-time driver, nanoseconds.
const millisecond protocol.Time = 1e6

const (
	// ackDelay is how long an acknowledgment waits for a frame to piggyback on. It is that of
	// Linux's TCP, long enough for the next collective call of many processes on few processors.
	ackDelay = 40 * millisecond
	// A peer that acknowledges nothing is polled after its retransmission timeout, which is
	// minRTO at least, then after twice as long each time, up to maxRTO. minRTO is several
	// times ackDelay: a peer that only delays its acknowledgment is not polled.
	minRTO = 200 * millisecond
	maxRTO = 1000 * millisecond
)

// longest is the longest message and the largest limit.
const longest = 1 << 30

// check fills in the defaults and checks the limits.
func (c *Config) check() error {
	if c.Rank < 0 {
		return fmt.Errorf("p2p: rank %d", c.Rank)
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
