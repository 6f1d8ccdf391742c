package broadcast

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/topology"
)

// builtin is a system that this package implements.
type builtin struct {
	name string
	// start makes one member. All live members listen already.
	start func(memberConfig, *receiver) (member, error)
	// tree is the only path to a member, or nil if there are others.
	tree func(members int) (topology.Tree, error)
	// files is how many files a member within this process takes, about.
	files int
}

func builtinOf(name string) (builtin, bool) {
	switch name {
	case "pleach":
		return builtin{name: name, start: startPleach, files: 9}, true
	case "bare":
		return builtin{name: name, start: startBare(binomial), tree: binomial, files: 3}, true
	case "flat":
		return builtin{name: name, start: startBare(star), tree: star, files: 3}, true
	}
	return builtin{}, false
}

// memberConfig says which member of which group a member is.
type memberConfig struct {
	group     string
	rank      int
	addresses []string
	listener  net.Listener // the member closes it
}

// member is one member of a group. Rank 0 is the root.
type member interface {
	// broadcast sends a message so many times, numbered from first.
	broadcast(ctx context.Context, payload []byte, first uint64, times int) error
	// counts is what the member has received.
	counts() counts
	close() error
}

// counts is what came in, and what it cost.
type counts struct {
	frames, bytes uint64
	cpu           time.Duration
}

func (c counts) minus(d counts) counts {
	return counts{c.frames - d.frames, c.bytes - d.bytes, c.cpu - d.cpu}
}

func (c counts) plus(d counts) counts {
	return counts{c.frames + d.frames, c.bytes + d.bytes, c.cpu + d.cpu}
}

// stamp writes a message's number into it, if it is long enough, so that the
// receiver can tell whether the right one arrives.
func stamp(payload []byte, number uint64) {
	if len(payload) >= 8 {
		binary.BigEndian.PutUint64(payload, number)
	}
}

// receiver gets the messages of a member. They come in order and once, so that its
// count is the number of the next one.
type receiver struct {
	size, burst int
	// arrived is called with the number of bursts that have arrived.
	arrived func(bursts uint64)

	count atomic.Uint64
	wrong atomic.Pointer[error]
}

// take takes the next message.
func (r *receiver) take(payload []byte) {
	number := r.count.Load()
	if len(payload) != r.size || r.size >= 8 && binary.BigEndian.Uint64(payload) != number {
		err := fmt.Errorf("message %d is not what was sent (%d bytes, number %d)", number, len(payload), first8(payload))
		r.wrong.CompareAndSwap(nil, &err)
		return
	}
	r.count.Store(number + 1)
	if (number+1)%uint64(r.burst) == 0 {
		r.arrived((number + 1) / uint64(r.burst))
	}
}

// err is what was wrong with the messages.
func (r *receiver) err() error {
	if err := r.wrong.Load(); err != nil {
		return *err
	}
	return nil
}

func first8(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
