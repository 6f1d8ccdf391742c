package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/protocol"
)

// Group is what a link needs of the group of a job's processes.
type Group interface {
	// Do calls a function alone, as the node calls the link. It returns an error when the
	// group is closed.
	Do(func()) error
	// Poll and Rest are those of [engine.PollingLink].
	Poll(from int) (received, ok bool)
	Rest()
	// Done ends with the membership, and Err says why.
	Done() <-chan struct{}
	Err() error
	// Accuse reports a process as one that has failed.
	Accuse(rank int, why error)
}

// Config describes a process of a job.
type Config struct {
	Rank protocol.Rank
	View membership.View
	// Processes are the IDs of all processes, by rank.
	Processes []string
	// Quorum says that the job continues only with a quorum.
	Quorum bool
	Logger *slog.Logger
}

// Link connects an engine to the group: it is the unicast channel that the node
// drives, and the engine's link. What the node calls, it calls alone, one at a time.
type Link struct {
	*p2p.Endpoint
	engine    *engine.Engine
	logger    *slog.Logger
	changed   notify.Notifier        // notifies when there may be room for more, or less is on its way
	opened    chan struct{}          // closed when the group can send
	group     atomic.Pointer[Group]  // nil before that
	seen      map[protocol.Rank]bool // peers that have been up
	processes []string               // by rank: the ID of the process
	quorum    bool                   // the job continues only with a quorum
	reached   atomic.Bool            // a peer has been up
	accused   map[int]error          // by rank: why it is to be removed
	reporter  *Reporter
	members   []engine.Member // the job's processes in the last view
	alone     chan uint64     // takes the view of a process that has reached no other
}

// New makes a link that knows the first view. SetEngine and Open follow.
func New(c Config) (*Link, error) {
	p := &Link{
		opened: make(chan struct{}), seen: make(map[protocol.Rank]bool), processes: c.Processes, logger: c.Logger,
		accused: make(map[int]error), quorum: c.Quorum, alone: make(chan uint64, 1), reporter: NewReporter(),
	}
	p.members = p.MembersOf(&c.View)
	e, err := p2p.New(p2p.Config{
		Rank:  c.Rank,
		Alloc: func(bytes int) []byte { return p.engine.Buffer(bytes) },
	})
	if err != nil {
		return nil, err
	}
	e.Install(0, &c.View)
	p.Endpoint = e
	return p, nil
}

// SetEngine says which engine the link is that of.
func (p *Link) SetEngine(e *engine.Engine) { p.engine = e }

// Engine returns the engine.
func (p *Link) Engine() *engine.Engine { return p.engine }

// Leave tells the launcher that this process leaves the job.
func (p *Link) Leave() { p.reporter.Left() }

// Complete tells the launcher that the processes of the last view have agreed on the end of the job.
func (p *Link) Complete() {
	var members []engine.Member
	if g := p.group.Load(); g != nil {
		_ = (*g).Do(func() { members = p.members })
	}
	p.reporter.Complete(members)
}

// Reached reports whether another process has been reached since the start.
func (p *Link) Reached() bool { return p.reached.Load() }

// Alone yields the number of a view that this process is alone in, if it has reached no
// other one and needs a quorum.
func (p *Link) Alone() <-chan uint64 { return p.alone }

// Open lets the engine send.
func (p *Link) Open(g Group) {
	p.group.Store(&g)
	close(p.opened)
}

// Receive implements [member.Unicast]. Messages that are complete go to the engine.
func (p *Link) Receive(now protocol.Time, from protocol.Rank, head, body []byte) error {
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
func (p *Link) Install(now protocol.Time, v *membership.View) {
	p.Endpoint.Install(now, v)
	members := p.MembersOf(v)
	if p.quorum && len(members) == 1 && !p.reached.Load() {
		select {
		case p.alone <- v.Number:
		default: // told already
		}
		return
	}
	p.engine.InstallMembers(v.Number, members)
	p.reporter.Changed(v.Number, p.members, members)
	p.members = members
	p.tellRemoved(v.Number, members)
	p.changed.Notify()
}

// MembersOf returns the processes of the job that are in a view.
func (p *Link) MembersOf(v *membership.View) []engine.Member {
	members := make([]engine.Member, 0, v.Members.Len())
	for _, m := range v.Members.All() {
		if int(m.Rank) < len(p.processes) && m.Identity == p.processes[m.Rank] {
			members = append(members, engine.Member{Rank: int(m.Rank), Incarnation: m.Incarnation})
		}
	}
	return members
}

// Up implements [member.Unicast].
func (p *Link) Up(now protocol.Time, peer protocol.Rank) {
	p.Endpoint.Up(now, peer)
	p.seen[peer] = true
	p.reached.Store(true)
	p.engine.PeerUp(int(peer))
}

// Down implements [member.Unicast]. A peer that has never been up may not have started yet.
func (p *Link) Down(now protocol.Time, peer protocol.Rank) {
	p.Endpoint.Down(now, peer)
	if p.seen[peer] {
		p.engine.PeerDown(int(peer))
	}
}

// Send implements [engine.Link].
func (p *Link) Send(ctx context.Context, to int, head, body []byte) error {
	return p.SendOwned(ctx, to, head, body, nil)
}

// SendOwned implements [engine.ZeroCopyLink].
func (p *Link) SendOwned(ctx context.Context, to int, head, body []byte, release func()) error {
	s := sendings.Get().(*sending)
	s.link, s.to, s.head, s.body, s.release = p, protocol.Rank(to), head, body, release
	err := p.wait(ctx, &s.attempt)
	s.link, s.head, s.body, s.release, s.err = nil, nil, nil, nil, nil
	sendings.Put(s)
	return err
}

// attempt is something to try within the group's step.
type attempt struct {
	try func() // sets err
	err error
}

// sending is a message to send. It is used again: a short call would otherwise spend much
// of its time on memory for it.
type sending struct {
	attempt
	link       *Link
	to         protocol.Rank
	head, body []byte
	release    func()
}

var sendings = sync.Pool{New: func() any {
	s := new(sending)
	s.try = func() { s.err = s.link.Endpoint.SendOwned(s.to, s.head, s.body, s.release) }
	return s
}}

// Poll implements [engine.PollingLink].
func (p *Link) Poll(from int) (received, ok bool) {
	if g := p.group.Load(); g != nil {
		return (*g).Poll(from)
	}
	return false, false
}

// Rest implements [engine.PollingLink].
func (p *Link) Rest() {
	if g := p.group.Load(); g != nil {
		(*g).Rest()
	}
}

// Flush implements [engine.FlushingLink]: it waits until everything that was sent has arrived, and
// acknowledges what was received.
func (p *Link) Flush(ctx context.Context) error {
	a := new(attempt)
	a.try = func() {
		p.FlushAcks()
		a.err = nil
		if !p.Idle() {
			a.err = p2p.ErrBusy
		}
	}
	return p.wait(ctx, a)
}

// wait tries until the unicast channel is not busy.
func (p *Link) wait(ctx context.Context, a *attempt) error {
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
		if err := (*g).Do(a.try); err != nil {
			return err
		}
		if !errors.Is(a.err, p2p.ErrBusy) {
			return a.err
		}
		if moved == nil {
			moved = p.changed.Wait()
			continue // it may have moved just before
		}
		select {
		case <-moved:
			moved = nil
		case <-ctx.Done():
			return fmt.Errorf("pleach: %w: %w", a.err, ctx.Err())
		case <-(*g).Done():
			return (*g).Err()
		}
	}
}

// Evict reports a process as one that has failed.
func (p *Link) Evict(rank int, why error) {
	g := p.group.Load()
	if g == nil {
		return
	}
	p.logger.Warn("a process is to be removed", "cause", why)
	_ = (*g).Do(func() { p.accused[rank] = why })
	(*g).Accuse(rank, why)
}

// tellRemoved logs what has become of processes that were stuck, within node.Do.
func (p *Link) tellRemoved(view uint64, members []engine.Member) {
	for rank, why := range p.accused {
		if !slices.ContainsFunc(members, func(m engine.Member) bool { return m.Rank == rank }) {
			delete(p.accused, rank)
			p.logger.Warn(fmt.Sprintf("%v: removed in view %d, its task is rank %d's", why, view, p.engine.Comm().Owner(rank)))
		}
	}
}
