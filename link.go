package pleach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/protocol"
)

// link connects an engine to the group: it is the unicast channel that the node
// drives, and the engine's link. What the node calls, it calls alone, one at a time.
type link struct {
	*p2p.Endpoint
	engine  *engine.Engine
	logger  *slog.Logger
	changed notify.Notifier        // notifies when there may be room for more, or less is on its way
	opened  chan struct{}          // closed when the group can send
	group   atomic.Pointer[Group]  // nil before that
	seen    map[protocol.Rank]bool // peers that have been up
	job     []string               // by rank: the ID of the process
	quorum  bool                   // the job continues only with a quorum
	reached atomic.Bool            // a peer has been up
	accused map[int]error          // by rank: why it is to be removed
	alone   chan error             // takes the error of a process that has reached no other
}

// newLink makes a link that knows the first view.
func newLink(b *initialState, quorum bool) (*link, error) {
	p := &link{
		opened: make(chan struct{}), seen: make(map[protocol.Rank]bool), job: b.job(),
		accused: make(map[int]error), quorum: quorum, alone: make(chan error, 1),
	}
	c, err := p2p.New(p2p.Config{
		Rank:  b.self.Rank,
		Alloc: func(bytes int) []byte { return p.engine.Buffer(bytes) },
	})
	if err != nil {
		return nil, err
	}
	c.Install(0, &b.view)
	p.Endpoint = c
	return p, nil
}

// open lets the engine send.
func (p *link) open(g *Group) {
	p.group.Store(g)
	close(p.opened)
}

// Receive implements [member.Unicast]. Messages that are complete go to the engine.
func (p *link) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
	err := p.Endpoint.Receive(now, from, head, body)
	p.changed.Notify()
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

// Install implements [member.Unicast]. A process that joins the group later, even at the
// rank of a dead one, does not belong to the job unless it has the dead one's ID: then it
// waits to be admitted.
func (p *link) Install(now protocol.Time, v *membership.View) {
	p.Endpoint.Install(now, v)
	members := p.membersOf(v)
	if p.quorum && len(members) == 1 && !p.reached.Load() {
		select {
		case p.alone <- isolatedError(v.Number, len(p.job)):
		default: // told already
		}
		return
	}
	p.engine.InstallMembers(v.Number, members)
	p.tellRemoved(v.Number, members)
	p.changed.Notify()
}

// membersOf returns the processes of the job that are in a view.
func (p *link) membersOf(v *membership.View) []engine.Member {
	members := make([]engine.Member, 0, v.Members.Len())
	for _, m := range v.Members.All() {
		if int(m.Rank) < len(p.job) && m.Identity == p.job[m.Rank] {
			members = append(members, engine.Member{Rank: int(m.Rank), Incarnation: m.Incarnation})
		}
	}
	return members
}

// Up implements [member.Unicast].
func (p *link) Up(now protocol.Time, peer protocol.Rank) {
	p.Endpoint.Up(now, peer)
	p.seen[peer] = true
	p.reached.Store(true)
	p.engine.PeerUp(int(peer))
}

// Down implements [member.Unicast]. A peer that has never been up may not have started yet.
func (p *link) Down(now protocol.Time, peer protocol.Rank) {
	p.Endpoint.Down(now, peer)
	if p.seen[peer] {
		p.engine.PeerDown(int(peer))
	}
}

// Send implements [engine.Link].
func (p *link) Send(ctx context.Context, to int, head, body []byte) error {
	return p.SendOwned(ctx, to, head, body, nil)
}

// SendOwned implements [engine.ZeroCopyLink].
func (p *link) SendOwned(ctx context.Context, to int, head, body []byte, release func()) error {
	return p.wait(ctx, func() error { return p.Endpoint.SendOwned(protocol.Rank(to), head, body, release) })
}

// Poll implements [engine.PollingLink].
func (p *link) Poll(from int) (received, ok bool) {
	if g := p.group.Load(); g != nil {
		return g.node.Poll(protocol.Rank(from))
	}
	return false, false
}

// Rest implements [engine.PollingLink].
func (p *link) Rest() {
	if g := p.group.Load(); g != nil {
		g.node.Rest()
	}
}

// Flush implements [engine.FlushingLink]: it waits until everything that was sent has arrived, and acknowledges what was
// received.
func (p *link) Flush(ctx context.Context) error {
	return p.wait(ctx, func() error {
		p.FlushAcks()
		if !p.Idle() {
			return p2p.ErrBusy
		}
		return nil
	})
}

// wait tries until the unicast channel is not busy.
func (p *link) wait(ctx context.Context, try func() error) error {
	g := p.group.Load()
	if g == nil {
		select {
		case <-p.opened:
			g = p.group.Load()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var moved <-chan struct{} // only if it is busy, which is rare
	for {
		var tried error
		if err := g.node.Do(func(protocol.Time) { tried = try() }); err != nil {
			return ErrClosed
		}
		if !errors.Is(tried, p2p.ErrBusy) {
			return tried
		}
		if moved == nil {
			moved = p.changed.Wait()
			continue // it may have moved just before
		}
		select {
		case <-moved:
			moved = nil
		case <-ctx.Done():
			return fmt.Errorf("pleach: %w: %w", tried, ctx.Err())
		case <-g.life.Done():
			return g.Err()
		}
	}
}
