package pleach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pleach-go/pleach/courier"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
)

// post brings a courier and an engine together: a carrier to the node, a link to
// the engine. What the node calls, it calls alone, one at a time.
type post struct {
	*courier.Courier
	engine *engine.Engine
	logger *slog.Logger
	moved  notify.Notifier // notifies when there may be room for more, or less is on its way
	opened chan struct{}   // closed when there is a group to send through
	group  *Group
	seen   map[protocol.Rank]bool // peers that have been up
	job    *membership.View       // who belongs to the job
}

// newPost makes a post whose courier knows the first view.
func newPost(b *beginning) (*post, error) {
	p := &post{opened: make(chan struct{}), seen: make(map[protocol.Rank]bool), job: &b.view}
	c, err := courier.New(courier.Config{
		Rank: b.self.Rank, Session: uint64(time.Now().UnixNano()),
		Make: func(bytes int) []byte { return p.engine.Buffer(bytes) },
	})
	if err != nil {
		return nil, err
	}
	c.Install(0, &b.view)
	p.Courier = c
	return p, nil
}

// open lets the engine send.
func (p *post) open(g *Group) {
	p.group = g
	close(p.opened)
}

// Receive implements [carrier]: what has come goes to the engine.
func (p *post) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
	err := p.Courier.Receive(now, from, head, body)
	p.moved.Notify()
	for {
		m, ok := p.Deliver()
		if !ok {
			return err
		}
		if err := p.engine.Receive(int(m.From), m.Data); err != nil {
			p.logger.Warn("message refused", "error", err)
		}
	}
}

// Install implements [carrier]. Whoever joins the group later, even at the rank of
// one who has died, is not of the job: it does not know what was called before.
func (p *post) Install(now protocol.Time, v *membership.View) {
	p.Courier.Install(now, v)
	var ranks []int
	for _, m := range v.Members {
		if first, ok := p.job.Member(m.Rank); ok && first.Incarnation == m.Incarnation {
			ranks = append(ranks, int(m.Rank))
		}
	}
	p.engine.Install(v.Number, ranks)
	p.moved.Notify()
}

// Up implements [carrier].
func (p *post) Up(now protocol.Time, peer protocol.Rank) {
	p.Courier.Up(now, peer)
	p.seen[peer] = true
	p.engine.PeerUp(int(peer))
}

// Down implements [carrier]. One who has never been up may be yet to start.
func (p *post) Down(now protocol.Time, peer protocol.Rank) {
	p.Courier.Down(now, peer)
	if p.seen[peer] {
		p.engine.PeerDown(int(peer))
	}
}

// Send implements [engine.Link].
func (p *post) Send(ctx context.Context, to int, head, body []byte) error {
	return p.SendOwned(ctx, to, head, body, nil)
}

// SendOwned implements [engine.ZeroCopyLink].
func (p *post) SendOwned(ctx context.Context, to int, head, body []byte, release func()) error {
	return p.wait(ctx, func() error { return p.Courier.Lend(protocol.Rank(to), head, body, release) })
}

// flush waits until everything that was sent has arrived.
func (p *post) flush(ctx context.Context) error {
	return p.wait(ctx, func() error {
		if !p.Idle() {
			return courier.ErrBusy
		}
		return nil
	})
}

// wait tries until the courier is not busy.
func (p *post) wait(ctx context.Context, try func() error) error {
	select {
	case <-p.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	var moved <-chan struct{} // asked for only if it is busy, which is rare
	for {
		var tried error
		if err := p.group.node.Do(func(protocol.Time) { tried = try() }); err != nil {
			return ErrClosed
		}
		if !errors.Is(tried, courier.ErrBusy) {
			return tried
		}
		if moved == nil {
			moved = p.moved.Wait()
			continue // it may have moved just before
		}
		select {
		case <-moved:
			moved = nil
		case <-ctx.Done():
			return fmt.Errorf("pleach: %w: %w", tried, ctx.Err())
		case <-p.group.over.done:
			return p.group.Err()
		}
	}
}
