package pleach

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/node"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
)

// Group is this process's membership in a group. Its methods may be called from
// several goroutines.
type Group struct {
	config Config
	node   *node.Node
	member *stream.Member // used only within node.Do

	turn      chan struct{} // held by the one broadcast that is writing
	arrived   chan struct{} // there may be a message
	written   chan struct{} // what was written is on its way, or some of it
	unwritten atomic.Int64  // segments that were not, when last looked at
	done      chan struct{} // closed by Close
	closing   sync.Once

	pending, dispatching atomic.Bool // see dispatch

	mu    sync.Mutex
	taken []stream.Message // from the member, for Messages to yield
	given int              // of taken
}

// Message is a message from another member.
type Message struct {
	// Root is the rank of who broadcast it.
	Root int
	// Data is shared with the group, which may still pass it on: it must not be
	// changed.
	Data []byte
	// Lost counts pieces of earlier messages of this root that could not be had
	// any more, because this process was cut off for longer than the others
	// keep them (Config.Stream.KeepBytes). It is 0 unless that has happened.
	Lost uint64
}

// ErrClosed is the error of a group that has been closed.
var ErrClosed = errors.New("pleach: group closed")

// Join makes this process a member. It returns as soon as the process can be
// reached; it does not wait for others, who may start later.
func Join(ctx context.Context, c Config) (*Group, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("pleach: join: %w", err)
	}
	t, err := c.settle()
	if err != nil {
		return nil, fmt.Errorf("pleach: join: %w", err)
	}
	member, err := stream.New(c.Stream)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: join: %w", err), t.Close())
	}
	g := &Group{
		config: c, member: member,
		turn: make(chan struct{}, 1), arrived: make(chan struct{}, 1), written: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	var after func()
	if c.Handler != nil {
		after = g.dispatch
	}
	g.node, err = node.New(node.Config{Transport: t, Protocol: member, Settled: g.settled, After: after, Logger: c.Logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: join: %w", err), t.Close())
	}
	return g, nil
}

// Rank is this process's rank.
func (g *Group) Rank() int { return int(g.config.Stream.Rank) }

// Size is the number of members, dead or alive.
func (g *Group) Size() int { return int(g.config.Stream.Size) }

// Broadcast sends data to all other members. When it returns nil, this process's
// own part is over: the message is on its way, and every live member will get it
// even if others die, unless this process dies before what it has handed to its
// operating system has left. The data is the caller's again.
//
// It waits while too much is waiting to be sent, and once, briefly, for a member
// that has become slow; ctx bounds the wait. If ctx ends it, a message that was
// only partly taken reaches nobody; one that was taken as a whole is still sent.
func (g *Group) Broadcast(ctx context.Context, data []byte) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return g.failed(ctx.Err())
	case <-g.done:
		return ErrClosed
	}
	if most := g.member.MaxMessage(); len(data) > most {
		return g.failed(fmt.Errorf("%d bytes are too long: %d at most (Config.Stream.MaxMessage)", len(data), most))
	}
	size := g.member.SegmentSize()
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), size)]
		data = data[len(piece):]
		if err := g.write(ctx, piece, len(data) > 0); err != nil {
			return g.failed(err)
		}
	}
	if g.unwritten.Load() == 0 {
		return nil // as usual: what was written last went out at once
	}
	return g.failed(g.wait(ctx, g.written, func(protocol.Time) bool { return g.member.Unwritten() == 0 }))
}

// write hands a piece of a message to the member, as soon as it has room.
func (g *Group) write(ctx context.Context, piece []byte, more bool) error {
	var written error
	err := g.wait(ctx, g.written, func(protocol.Time) bool {
		written = g.member.Write(piece, more)
		return !errors.Is(written, stream.ErrBusy)
	})
	if err = errors.Join(err, written); err != nil {
		_ = g.node.Do(func(protocol.Time) { g.member.Abandon() })
	}
	return err
}

// wait tries until it works: at once, and each time there is a sign that it may.
func (g *Group) wait(ctx context.Context, sign <-chan struct{}, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := g.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		select {
		case <-sign:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.done:
			return ErrClosed
		}
	}
}

// Messages yields what other members broadcast, each message once, those of one
// root in the order it sent them. It ends when ctx does or the group is closed.
// Messages that are not taken wait, up to Config.Stream.InboxBytes; beyond that
// they are held back at others, and still come, as long as those keep them.
func (g *Group) Messages(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for ctx.Err() == nil {
			m, err := g.next(ctx)
			if err != nil || !yield(Message{Root: int(m.Root), Data: m.Data, Lost: m.Lost}) {
				return
			}
		}
	}
}

// takeAtOnce is how many messages are taken from the member at a time: taking
// each alone would spend more on the member's lock than on the message.
const takeAtOnce = 64

// next returns the next message, as soon as there is one.
func (g *Group) next(ctx context.Context) (stream.Message, error) {
	for {
		if m, ok := g.following(); ok {
			return m, nil
		}
		if err := g.wait(ctx, g.arrived, g.take); err != nil {
			return stream.Message{}, err
		}
	}
}

// following returns the next of the messages taken.
func (g *Group) following() (stream.Message, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given == len(g.taken) {
		return stream.Message{}, false
	}
	m := g.taken[g.given]
	g.taken[g.given] = stream.Message{}
	g.given++
	return m, true
}

// take takes messages from the member, if there are any.
func (g *Group) take(now protocol.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given < len(g.taken) {
		return true // another goroutine has
	}
	g.taken, g.given = g.taken[:0], 0
	for len(g.taken) < takeAtOnce {
		m, ok := g.member.Deliver(now)
		if !ok {
			break
		}
		g.taken = append(g.taken, m)
	}
	return len(g.taken) > 0
}

// Stats returns what this member has counted.
func (g *Group) Stats() Stats {
	var s Stats
	_ = g.node.Do(func(protocol.Time) { s.Stats = g.member.Stats() })
	return s
}

// Stats counts what a member has done.
type Stats struct{ stream.Stats }

// Close leaves the group. Others go on. It returns within a second, whatever
// they do.
func (g *Group) Close() error {
	var err error
	g.closing.Do(func() {
		close(g.done)
		err = g.node.Close()
	})
	return err
}

// settled gives signs to those who wait. It is called within node.Do.
func (g *Group) settled(protocol.Time) {
	if g.member.Pending() > 0 {
		if g.config.Handler != nil {
			g.pending.Store(true)
		} else {
			give(g.arrived)
		}
	}
	if unwritten := int64(g.member.Unwritten()); unwritten != g.unwritten.Load() {
		g.unwritten.Store(unwritten)
		give(g.written)
	}
}

// give gives a sign, unless one is there already.
func give(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}

// failed names this member in an error.
func (g *Group) failed(err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("pleach: broadcast of rank %d: %w", g.Rank(), err)
}
