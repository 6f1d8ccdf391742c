package scale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// group is all members of a group with views, within this process.
type group struct {
	network network
	members []*pleach.Group // by rank; nil: dead
	arrived atomic.Pointer[func(rank int, payload []byte)]

	watching sync.WaitGroup
	end      context.CancelFunc // of watching
	life     context.Context
	awaited  atomic.Pointer[awaited]
	evicted  atomic.Int64

	idle load // in a second
}

// load is what all members did.
type load struct {
	frames float64
	cpu    time.Duration
	at     time.Time
}

// startGroup starts all members.
func startGroup(ctx context.Context, transport string, members int) (_ *group, err error) {
	g := &group{members: make([]*pleach.Group, members)}
	g.life, g.end = context.WithCancel(context.Background())
	g.network, err = newNetwork(transport, members)
	if err != nil {
		return nil, err
	}
	for rank := range members {
		g.members[rank], err = g.start(ctx, rank)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: rank %d: %w", rank, err), g.close())
		}
	}
	return g, nil
}

// start starts one member. Messages go to a handler, as in the systems it is compared
// with.
func (g *group) start(ctx context.Context, rank int) (*pleach.Group, error) {
	t, err := g.network.open(rank)
	if err != nil {
		return nil, err
	}
	return pleach.Start(ctx, pleach.Config{
		Group: groupName, Network: pleach.Network{Transport: t}, Addresses: g.network.addresses(), Rank: rank,
		OnMessage: func(m pleach.Message, err error) {
			if arrived := g.arrived.Load(); arrived != nil && err == nil {
				(*arrived)(rank, m.Data)
			}
		},
	})
}

// live counts the members that are.
func (g *group) live() (n int) {
	for _, m := range g.members {
		if m != nil {
			n++
		}
	}
	return n
}

// load is what all members have done so far.
func (g *group) load() load {
	frames, _ := g.network.counts()
	return load{float64(frames), bench.ProcessorTime(), time.Now()}
}

// since is what members did after a time, beyond what an idle group does.
func (g *group) since(before load) load {
	now := g.load()
	elapsed := now.at.Sub(before.at)
	return load{
		frames: max(0, now.frames-before.frames-g.idle.frames*elapsed.Seconds()),
		cpu:    max(0, now.cpu-before.cpu-time.Duration(float64(g.idle.cpu)*elapsed.Seconds())),
	}
}

// measureIdle measures what the group does when nothing is sent.
func (g *group) measureIdle(ctx context.Context, d time.Duration) {
	before := g.load()
	rest(ctx, d)
	now := g.load()
	seconds := now.at.Sub(before.at).Seconds()
	g.idle = load{
		frames: (now.frames - before.frames) / seconds,
		cpu:    time.Duration(float64(now.cpu-before.cpu) / seconds),
	}
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// close ends all members at once: that each leaves would take a view for each.
func (g *group) close() error {
	g.end()
	errs := make([]error, len(g.members))
	var closing sync.WaitGroup
	for rank, m := range g.members {
		if m != nil {
			closing.Go(func() { errs[rank] = m.Abort() })
		}
	}
	closing.Wait()
	g.watching.Wait()
	return errors.Join(errs...)
}

// system is the group as one that package broadcast measures. It outlives that.
func (g *group) system() broadcast.System {
	return broadcast.System{
		Name: "pleach with views",
		Start: func(_ context.Context, _ int, arrived func(int, []byte)) (broadcast.Started, error) {
			g.arrived.Store(&arrived)
			return &started{group: g, began: g.load()}, nil
		},
	}
}

type started struct {
	group *group
	began load
	count uint64 // what Counts has returned last
}

// Broadcast implements [broadcast.Started].
func (s *started) Broadcast(ctx context.Context, payload []byte) error {
	return s.group.broadcast(ctx, payload)
}

// broadcast has rank 0 broadcast. On a host that is too busy, members may take each
// other for dead for a while: then the round is not complete.
func (g *group) broadcast(ctx context.Context, payload []byte) error {
	err := g.members[0].Broadcast(ctx, payload)
	if errors.Is(err, pleach.ErrNoQuorum) {
		return nil
	}
	return err
}

// Counts implements [broadcast.Started]. A count never falls, although a group on a busy
// host may do less than it did when it was idle.
func (s *started) Counts() (messages, bytes uint64) {
	s.count = max(s.count, uint64(s.group.since(s.began).frames))
	return s.count, 0
}

// Close implements [broadcast.Started].
func (s *started) Close() error {
	s.group.arrived.Store(nil)
	return nil
}
