package pleach

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport"
)

// Group is this process's membership in a group. Its methods may be called from
// several goroutines.
type Group struct {
	config    Config
	address   string // where it listens
	node      *node.Node
	parts     *parts         // used only within node.Do
	member    *stream.Member // its streams
	directory transport.AddressBook
	guests    guests
	greeted   membership.Member // the last one on the ring to be
	stable    uint64            // when last looked at
	lossy     int               // likewise

	detector    detect.Detector // nil: the group is fixed
	connections *detect.Connections
	view        atomic.Pointer[View]
	changed     bell   // rings when there is a new view, or more is stable or known to be lost
	over        ending // of this member's part
	standing    atomic.Pointer[error]

	turn      chan struct{} // held by the one broadcast that is writing
	arrived   chan struct{} // there may be a message
	written   chan struct{} // what was written is on its way, or some of it
	unwritten atomic.Int64  // segments that were not, when last looked at
	restarts  atomic.Uint64 // messages cut in two by a new view, likewise
	closing   sync.Once

	pending, dispatching atomic.Bool // see dispatch

	mu    sync.Mutex
	taken []stream.Message // from the member, for Messages to yield
	given int              // of taken
}

// Message is a message from another member, or a notice that some are lost.
type Message struct {
	// Root is the rank of who broadcast it.
	Root int
	// Data is shared with the group, which may still pass it on: it must not be
	// changed.
	Data []byte
	// View is the number of the view it was sent in: everybody who goes on from
	// that view to the next has got it, or nobody.
	View uint64
	// Lost is 0 in a message. If it is not 0, this is a notice, and Data is nil:
	// messages of this root, sent after those that have come, cannot be had any
	// more, because this process was cut off or slow for longer than the others
	// keep them (Config.Stream.KeepBytes). Lost counts their pieces, not
	// messages: a piece is a part of a long message, or several short ones. The
	// notice comes as soon as the loss is certain, and later messages follow it.
	Lost uint64
}

// Rank is this process's rank.
func (g *Group) Rank() int { return int(g.config.Stream.Rank) }

// Size is the number of ranks of the present view, dead members' and holes
// included.
func (g *Group) Size() int { return g.view.Load().Slots }

// Broadcast sends data to all other members. When it returns nil, this process's
// own part is over: the message is on its way, and every live member will get it
// even if others die, unless this process dies before what it has handed to its
// operating system has left. The data is the caller's again.
//
// In a burst of many small messages they may wait for each other for a fraction of
// a millisecond, to go together; Close, Leave and Stable do not leave any behind.
//
// It waits while too much is waiting to be sent, and once, briefly, for a member
// that has become slow; ctx bounds the wait. If ctx ends it, a message that was
// only partly taken reaches nobody; one that was taken as a whole is still sent.
func (g *Group) Broadcast(ctx context.Context, data []byte) error {
	if err := g.takeTurn(ctx); err != nil {
		return g.failed("broadcast", err)
	}
	defer g.endTurn()
	if most := g.member.MaxMessage(); len(data) > most {
		return g.failed("broadcast", fmt.Errorf("%d bytes are too long: %d at most (Config.Stream.MaxMessage)", len(data), most))
	}
	for {
		again, err := g.send(ctx, data)
		if !again || err != nil {
			return g.failed("broadcast", err)
		}
	}
}

// send sends a message. It has to be sent again if a new view has cut it in two.
func (g *Group) send(ctx context.Context, data []byte) (again bool, err error) {
	if err := g.unable(); err != nil {
		return false, err
	}
	var restarts uint64
	cut := g.restarts.Load()
	size := g.member.SegmentSize()
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), size)]
		data = data[len(piece):]
		if restarts, err = g.write(ctx, piece, len(data), cut); err != nil || restarts != cut {
			return err == nil, err
		}
	}
	if g.unwritten.Load() == 0 && g.restarts.Load() == cut {
		return false, nil // as usual: what was written last went out at once
	}
	err = g.wait(ctx, g.written, func(protocol.Time) bool {
		restarts = g.member.Restarts()
		return g.member.Unwritten() == 0 || restarts != cut
	})
	return restarts != cut, err
}

// takeTurn waits until nobody else is broadcasting.
func (g *Group) takeTurn(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.over.done:
		return g.Err()
	}
}

func (g *Group) endTurn() { <-g.turn }

// flush waits until all that was broadcast before has been sent.
func (g *Group) flush(ctx context.Context) error {
	if err := g.takeTurn(ctx); err != nil {
		return err
	}
	defer g.endTurn()
	if err := g.node.Do(func(protocol.Time) { g.member.Hasten() }); err != nil {
		return ErrClosed
	}
	return g.wait(ctx, g.written, func(protocol.Time) bool { return g.member.Unwritten() == 0 })
}

// write hands a piece of a message to the member, as soon as it has room, unless
// the message has been cut meanwhile.
func (g *Group) write(ctx context.Context, piece []byte, left int, cut uint64) (restarts uint64, err error) {
	var written error
	err = g.wait(ctx, g.written, func(protocol.Time) bool {
		if restarts = g.member.Restarts(); restarts != cut {
			return true
		}
		written = g.member.Write(piece, left)
		return !errors.Is(written, stream.ErrBusy)
	})
	if err = errors.Join(err, written); err != nil {
		_ = g.node.Do(func(protocol.Time) { g.member.Abandon() })
	}
	return restarts, err
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
		case <-g.over.done:
			return g.Err()
		}
	}
}

// Messages yields what other members broadcast, each message once, those of one
// root in the order it sent them. It ends when ctx does, the group is closed, or this
// process is no longer a member ([Group.Err] says why).
// Messages that are not taken wait, up to Config.Stream.InboxBytes; beyond that
// they are held back at others, and still come, as long as those keep them.
func (g *Group) Messages(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for ctx.Err() == nil {
			m, err := g.next(ctx)
			if err != nil || !yield(messageOf(&m)) {
				return
			}
		}
	}
}

func messageOf(m *stream.Message) Message {
	return Message{Root: int(m.Root), Data: m.Data, View: m.View, Lost: m.Lost}
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

// Close ends this process's part at once, without a word: to the others it is as
// if it had died. See [Group.Leave]. It returns within a second, whatever they do.
func (g *Group) Close() error {
	var err error
	g.closing.Do(func() {
		_ = g.node.Do(func(protocol.Time) { g.member.Hasten() })
		g.over.end(ErrClosed)
		err = g.node.Close()
		if g.detector != nil {
			err = errors.Join(err, g.detector.Close())
		}
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
	unwritten, restarts := int64(g.member.Unwritten()), g.member.Restarts()
	if unwritten != g.unwritten.Load() || restarts != g.restarts.Load() {
		g.restarts.Store(restarts) // first: nothing unwritten must not look like all sent
		g.unwritten.Store(unwritten)
		give(g.written)
	}
	if stable, lossy := g.member.Stable(), len(g.member.Lossy()); stable != g.stable || lossy != g.lossy {
		g.stable, g.lossy = stable, lossy
		g.changed.give()
	}
	if g.parts.changed {
		g.parts.changed = false
		g.answerGuests()
		g.stand()
	}
}

// give gives a sign, unless one is there already.
func give(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
