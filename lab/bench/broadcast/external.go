package broadcast

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// System is an external system: one that this package does not implement, and that
// Pleach is compared with. It may lose messages, or deliver them late, twice or
// in another order. All its members are in this process.
type System struct {
	Name string
	// Start starts all members, and returns when they know each other. A member
	// calls arrived with every message it gets, from any goroutine. Rank 0 is the
	// root, which need not call it. The system lives until Close or the end of
	// ctx.
	Start func(ctx context.Context, members int, arrived func(rank int, payload []byte)) (Started, error)
	// Settling is how long the system still works after all members have the
	// message. It rests as long before the next round. If less than 2 ms, 2 ms.
	Settling time.Duration
	// Files is how many files a member takes, about.
	Files int
}

// Started is all members of a [System].
type Started interface {
	// Broadcast has the root send. It may keep the payload.
	Broadcast(ctx context.Context, payload []byte) error
	// Counts is what all members have received. It is 0 if the system does not
	// tell.
	Counts() (messages, bytes uint64)
	Close() error
}

// Messages of a [System] are known by the number in them.
const leastExternalSize = 8

// limitOfClosing is how long a system may take to end.
const limitOfClosing = 20 * time.Second

// externalGroup is a group of a [System].
type externalGroup struct {
	system  System
	started Started
	size    int
	members int
	rounds  uint64
	latch   latch
	seen    []atomic.Uint64 // by rank, the last round that arrived
	wrong   atomic.Pointer[error]
}

// external returns an external system by its name.
func (c *Config) external(name string) (System, bool) {
	i := slices.IndexFunc(c.External, func(s System) bool { return s.Name == name })
	if i < 0 {
		return System{}, false
	}
	return c.External[i], true
}

// checkExternal says what cannot be asked of such systems.
func (c *Config) checkExternal(name string) error {
	if c.Rate || c.Processes || c.Size < leastExternalSize || !slices.Equal(c.Dead, []int{0}) {
		return fmt.Errorf("%s: can be measured only one round at a time, in one process, with no member dead and messages of at least %d bytes", name, leastExternalSize)
	}
	return nil
}

func newExternalGroup(ctx context.Context, c *Config, s System) (*externalGroup, error) {
	g := &externalGroup{
		system: s, size: c.Size, members: c.Members,
		latch: latch{done: make(chan arrival, 16)}, seen: make([]atomic.Uint64, c.Members),
	}
	g.system.Settling = max(s.Settling, settling)
	var err error
	g.started, err = s.Start(ctx, c.Members, g.take)
	if err != nil {
		return nil, fmt.Errorf("bench: %s: %w", s.Name, err)
	}
	return g, nil
}

// take takes a message from a member. Only the first copy counts, and only of the
// round that is latch.
func (g *externalGroup) take(rank int, payload []byte) {
	if rank == 0 {
		return
	}
	if len(payload) != g.size {
		err := fmt.Errorf("bench: %s, rank %d: %d bytes arrived, and %d were sent", g.system.Name, rank, len(payload), g.size)
		g.wrong.CompareAndSwap(nil, &err)
		return
	}
	round := binary.BigEndian.Uint64(payload) + 1
	for {
		last := g.seen[rank].Load()
		if last >= round {
			return
		}
		if g.seen[rank].CompareAndSwap(last, round) {
			g.latch.arrive(round)
			return
		}
	}
}

func (g *externalGroup) broadcast(ctx context.Context, limit time.Duration) (outcome, error) {
	payload := make([]byte, g.size)
	stamp(payload, g.rounds)
	g.rounds++
	g.latch.expect(g.rounds, g.members-1)
	cpu := bench.ProcessorTime()
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	if err := g.started.Broadcast(ctx, payload); err != nil {
		return outcome{}, err
	}
	end := g.latch.wait(timed, g.rounds)
	time.Sleep(g.system.Settling)
	o := outcome{cpu: bench.ProcessorTime() - cpu}
	if !end.IsZero() {
		o.complete, o.took = 1, end.Sub(start)
	}
	if err := g.wrong.Load(); err != nil {
		return o, *err
	}
	return o, nil
}

func (g *externalGroup) counts() (counts, error) {
	messages, bytes := g.started.Counts()
	return counts{frames: messages, bytes: bytes}, nil
}

// close does not wait for a system that does not end.
func (g *externalGroup) close() error {
	closed := make(chan error, 1)
	go func() { closed <- g.started.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limitOfClosing):
		return fmt.Errorf("bench: %s has not ended after %v", g.system.Name, limitOfClosing)
	}
}
