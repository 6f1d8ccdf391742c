package pleach

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// directs is this member's side of what members tell single members. All but room is used
// within node.Do.
type directs struct {
	*core
	agreed   *agreed
	asking   *sync.WaitGroup
	channel  *unicast.Machine // nil: the group is static
	room     notify.Notifier  // notifies when what was too much may be sent now
	arrived  uint64           // counts the messages that have arrived at their receivers
	progress uint64           // of channel and arrived, after the previous step
	posting  bool             // a message was posted after the frames of the step were sent
	stepping bool             // the frames of the step are sent
}

// defaultSendBytes is Limits.SendBytes, and defaultRequests Limits.Requests, if they are
// zero.
const (
	defaultSendBytes = 1 << 20
	defaultRequests  = 256
)

// Longest messages to a single member: a head of a request is shorter than directHead.
const (
	directHead = 2048
	maxDirect  = 1<<30 - directHead
)

// tooLongDirect returns an error if not all members can receive a message of a size.
func (d *directs) tooLongDirect(size int) error {
	if size > maxDirect {
		return &MessageSizeError{Size: size, Max: maxDirect, ID: d.self.Identity, From: -1}
	}
	return d.agreed.tooLong(size)
}

// maxDirect returns the longest message to a single member.
func (l *Limits) maxDirect() int {
	if l.MaxMessage == 0 {
		return maxDirect
	}
	return min(l.MaxMessage, maxDirect)
}

// makeDirect makes this member's side of what members tell single members.
func (g *session) makeDirect(s *initialState) {
	if g.machine.Static() {
		return
	}
	c := unicast.Config{
		Self: g.self.Rank, View: s.view, Window: g.config.Limits.SendBytes, MaxRequests: g.config.Limits.Requests,
		Post: g.direct.post, Serve: g.calls.serve, Canceled: g.calls.cancelServing, State: g.replica.takeState,
		Arrival: g.tracer.takeArrival,
	}
	if c.Window == 0 {
		c.Window = defaultSendBytes
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = defaultRequests
	}
	g.direct.channel = unicast.New(c)
}

// post puts a message on the channel to a member.
func (d *directs) post(to protocol.Rank, head, body []byte, released func()) {
	d.posting = d.stepping
	err := d.machine.SendDirect(to, head, body, func() {
		d.arrived++
		if released != nil {
			released()
		}
	})
	if err != nil {
		d.log.Warn("message not sent", "to", to, "error", err) // its length was checked before
	}
}

// stepDirect takes what has arrived from single members, after the frames of a step were
// sent. Taken is called after that.
func (d *directs) stepDirect(taken func()) {
	if d.channel == nil {
		return
	}
	d.stepping, d.posting = true, false
	for m, ok := d.machine.DeliverDirect(); ok; m, ok = d.machine.DeliverDirect() {
		if err := d.channel.Receive(m.From, m.Data); err != nil {
			d.log.Warn("message refused", "error", err)
		}
	}
	taken()
	d.stepping = false
	if d.posting {
		d.asking.Go(func() { _ = d.node.Do(func(protocol.Time) {}) }) // sends it
	}
	if p := d.channel.Progress() + d.arrived; p != d.progress {
		d.progress = p
		d.room.Notify()
	}
}

// Send sends data to the program of one member, which may be this one. It goes to the process
// that the member names by rank and incarnation, as a view has them: if another process has
// the rank by now, the error is a [*GoneError]. Without an incarnation, the process is the
// one that has the rank now. Messages of one sender arrive once each and in order, as
// long as both processes are members. Their [Message.Direct] is true. A message may
// overtake a broadcast of the same sender, and the other way around.
//
// When Send returns nil, the message is on its way. If its receiver dies or leaves before
// it has the message, the sender is not told: [Group.Request] tells. If the receiver is
// not in the view, the error is a [*GoneError].
//
// Send blocks while the receiver's program has not received Config.Limits.SendBytes of
// what this process has sent to it. If ctx ends meanwhile, the message is not sent. The
// caller may reuse data. A static group has no views that would end a channel to a dead
// process, so Send returns [ErrStatic] there.
func (g *Group) Send(ctx context.Context, to Member, data []byte) error {
	s := g.session()
	err := s.direct.sendTo(ctx, to, slices.Clone(data))
	if err == nil && to.Rank == s.Rank() && s.config.OnMessage != nil {
		s.receiver.dispatch()
	}
	return err
}

func (d *directs) sendTo(ctx context.Context, to Member, data []byte) error {
	err := d.tryDirect(ctx, to, data, func(h header.Encoded) error {
		return d.channel.Send(protocol.Rank(to.Rank), h, data)
	})
	return d.wrap("send", err)
}

// tryDirect tries to send something to a member, with the header that ctx has, until there is
// room for it.
func (d *directs) tryDirect(ctx context.Context, to Member, data []byte, try func(header.Encoded) error) error {
	if d.machine.Static() {
		return ErrStatic
	}
	h, err := headerOf(ctx, d.view.Load())
	if err != nil {
		return err
	}
	if err := d.tooLongDirect(len(data)); err != nil {
		return err
	}
	err = d.waitRoom(ctx, func() error {
		v := d.machine.View()
		if m, ok := v.Member(protocol.Rank(to.Rank)); ok && to.Incarnation != 0 && m.Incarnation != to.Incarnation {
			return &unicast.GoneError{Rank: m.Rank, View: v.Number}
		}
		return try(h)
	})
	if gone := new(unicast.GoneError); errors.As(err, &gone) {
		return &GoneError{Rank: to.Rank, View: gone.View}
	}
	return err
}

// waitRoom tries until there is room, and as long as this process is a member that may
// send.
func (d *directs) waitRoom(ctx context.Context, try func() error) error {
	for {
		if err := d.sendErr(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		room := d.room.Wait()
		var tried error
		if err := d.node.Do(func(protocol.Time) { tried = try() }); err != nil {
			return ErrClosed
		}
		if !errors.Is(tried, unicast.ErrBusy) && !errors.Is(tried, p2p.ErrBusy) {
			return tried
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.life.Done():
			return d.Err()
		}
	}
}

// deliverDirect returns the next message that was sent to this process alone, if there is
// one. It is called within node.Do.
func (d *directs) deliverDirect() (item, bool) {
	if d.channel == nil {
		return item{}, false
	}
	m, ok := d.channel.Deliver()
	return item{Message: Message{From: int(m.From), Data: m.Data, View: m.View, Direct: true, Header: m.Header.Map()}}, ok
}

// flushDirect waits until what was sent to single members before has arrived.
func (d *directs) flushDirect(ctx context.Context) error {
	if d.node.Do(func(protocol.Time) { d.machine.FlushDirect() }) != nil {
		return ErrClosed
	}
	return d.waitRoom(ctx, func() error {
		if !d.machine.DirectFlushed() {
			return p2p.ErrBusy
		}
		return nil
	})
}
