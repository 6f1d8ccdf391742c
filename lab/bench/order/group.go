package order

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/ordered"
)

// group is a group of Pleach, with or without an order.
type group struct {
	groups    []*pleach.Group
	orders    []*ordered.Order // nil: the bare broadcast
	counts    []atomic.Int64
	arrived   chan struct{} // a message at a member; one that nobody awaits is dropped
	ends      context.CancelFunc
	receiving sync.WaitGroup
}

// joinTimeout bounds the start of each member.
const joinTimeout = 30 * time.Second

func startGroup(ctx context.Context, name string, members int) (Started, error) {
	g := &group{counts: make([]atomic.Int64, members), arrived: make(chan struct{}, members)}
	life, ends := context.WithCancel(context.Background())
	g.ends = ends
	var seeds []string
	for m := range members {
		if err := g.join(ctx, life, name, m, seeds); err != nil {
			g.Close()
			return nil, err
		}
		seeds = []string{g.groups[0].Self().Address}
	}
	return g, g.awaitView(ctx, members)
}

// join makes a member, and receives what it gets.
func (g *group) join(ctx, life context.Context, name string, m int, seeds []string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if name == Broadcast {
		join := pleach.Join
		if m == 0 {
			join = pleach.Create
		}
		member, err := join(ctx, pleach.Config{}, seeds...)
		if err != nil {
			return err
		}
		g.groups = append(g.groups, member)
		g.receiving.Go(func() {
			for _, err := range member.Messages(life) {
				if err == nil { // otherwise messages are missing
					g.note(m)
				}
			}
		})
		return nil
	}
	o, err := ordered.Join(ctx, ordered.Config{Safe: name == Safe}, seeds...)
	if err != nil {
		return err
	}
	g.groups, g.orders = append(g.groups, o.Group()), append(g.orders, o)
	g.receiving.Go(func() {
		for _, err := range o.Messages(life) {
			if err == nil {
				g.note(m)
			}
		}
	})
	return nil
}

// awaitView waits until all members are in one view and, with an order, know its leader.
func (g *group) awaitView(ctx context.Context, members int) error {
	for {
		ready := true
		for m, member := range g.groups {
			v := member.View()
			ready = ready && v.Size() == members
			if g.orders != nil {
				s := g.orders[m].Stats()
				ready = ready && s.Leader >= 0 && s.View == v.Number
			}
		}
		if ready {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			g.Close()
			return ctx.Err()
		}
	}
}

// note counts a message that a member has received.
func (g *group) note(m int) {
	g.counts[m].Add(1)
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// Send has a member broadcast a message.
func (g *group) Send(ctx context.Context, m int, data []byte) error {
	if g.orders == nil {
		err := g.groups[m].Broadcast(ctx, data)
		if err == nil {
			g.note(m) // it has its own message
		}
		return err
	}
	return g.orders[m].Broadcast(ctx, "", data)
}

// Received returns how many messages a member has received.
func (g *group) Received(m int) int { return int(g.counts[m].Load()) }

// Await waits until every member has received one message.
func (g *group) Await(ctx context.Context) error {
	for range g.groups {
		select {
		case <-g.arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends the members.
func (g *group) Close() {
	g.ends()
	for _, o := range g.orders {
		_ = o.Abort()
	}
	if g.orders == nil {
		for _, member := range g.groups {
			_ = member.Abort()
		}
	}
	g.receiving.Wait()
}
