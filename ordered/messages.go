package ordered

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/sequencer"
)

// Message is a message in its place in the order.
type Message struct {
	// Number is the message's place in the order, from 1. All members number alike.
	Number uint64
	// From is the rank of the member that has sent it, and Incarnation tells the starts of
	// processes with that rank apart ([pleach.Member]).
	From        int
	Incarnation uint64
	Topic       string
	// Data must not be changed.
	Data []byte
}

// delivery is what Messages yields: a message or, if gap is not nil, that.
type delivery struct {
	message Message
	gap     *pleach.GapError
}

// result returns the message, or the error that takes the place of messages.
func (d *delivery) result() (Message, error) {
	if d.gap != nil {
		return Message{}, d.gap
	}
	return d.message, nil
}

// Messages yields all messages in their order, this process's own included. It ends without an error
// when ctx ends or this process is no longer a member: [Order.Err] returns the reason. One goroutine
// may receive.
//
// An error is a [*pleach.GapError], and the Message is zero then: this process was removed and has
// joined again (Config.Group.Recovery.Rejoin). The loop continues. Messages that others have received meanwhile
// are missing, unless Config.Group.State has them. Broadcasts of this process that it had not received
// itself may or may not be among them.
//
// The order advances as programs receive: a program that does not receive throttles the
// others, and leaves the group after Limits.SlowTimeout. So one goroutine receives and others
// broadcast.
func (o *Order) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if !o.yield(yield) {
			return
		}
		for m, err := range o.group.Messages(ctx) {
			if !o.take(&m, err) || !o.yield(yield) {
				return
			}
		}
	}
}

// yield yields what is delivered. It reports false if the program wants no more.
func (o *Order) yield(yield func(Message, error) bool) bool {
	for len(o.delivered) > 0 {
		d := o.delivered[0]
		o.delivered = o.delivered[1:]
		if !yield(d.result()) {
			return false
		}
	}
	return true
}

// take gives a message of the group, or the error in its place, to the machine. It reports false if
// this process cannot continue.
func (o *Order) take(m *pleach.Message, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	gap, afterGap := errors.AsType[*pleach.GapError](err)
	lost, isLoss := errors.AsType[*pleach.LostError](err)
	switch {
	case afterGap:
		o.stats.Resent += o.machine.Resent()
		o.enter(sequencer.Member{Rank: o.group.Rank(), Incarnation: gap.To})
		o.delivered = append(o.delivered, delivery{gap: gap})
		o.room.Notify()
	case isLoss:
		o.machine.Lost(lost.View, lost.From)
	case m.Direct:
		if o.machine.Acknowledge(m.From, m.Data) == nil {
			notify.Signal(o.casts)
		}
	case !o.knows:
		o.end(ErrStateLost)
		o.running.Go(func() { _ = o.group.Abort() })
		return false
	default:
		o.receive(m)
	}
	return true
}

// receive takes a broadcast. Bytes that are no frame come from a program that broadcasts to the
// group itself.
func (o *Order) receive(m *pleach.Message) {
	messages, _ := o.machine.Receive(m.View, m.From, m.Data)
	for i := range messages {
		o.delivered = append(o.delivered, delivery{message: messageOf(&messages[i])})
	}
	o.stats.Delivered += uint64(len(messages))
	o.stepped()
}

func messageOf(m *sequencer.Message) Message {
	return Message{Number: m.Number, From: m.Origin.Rank, Incarnation: m.Origin.Incarnation, Topic: m.Topic, Data: m.Data}
}

// stepped wakes what waits for the machine.
func (o *Order) stepped() {
	o.room.Notify()
	notify.Signal(o.forwards)
	notify.Signal(o.acks)
	notify.Signal(o.casts)
}

// state is the order and what the program keeps, for joiners. Its methods are called between two
// messages of the group, on the goroutine that receives.
type state struct {
	order   *Order
	program pleach.State // nil: none
}

// maxOrder bounds the bytes of an order in a snapshot.
const maxOrder = 1 << 30

// Snapshot implements [pleach.State].
func (s *state) Snapshot(w io.Writer) error {
	s.order.mu.Lock()
	knows, b := s.order.knows, sequencer.AppendState(nil, s.order.machine)
	s.order.mu.Unlock()
	if !knows {
		return ErrStateLost
	}
	_, err := w.Write(b)
	if err != nil || s.program == nil {
		return err
	}
	return s.program.Snapshot(w)
}

// OfferState implements [pleach.StateOffer] by what the program offers.
func (s *state) OfferState() uint64 {
	if o, ok := s.program.(pleach.StateOffer); ok {
		return o.OfferState()
	}
	return 0
}

// Restore implements [pleach.State].
func (s *state) Restore(r io.Reader) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint64(head[:])
	if size > maxOrder {
		return fmt.Errorf("ordered: a snapshot of %d bytes", size)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return err
	}
	s.order.mu.Lock()
	err = s.order.machine.Restore(b)
	s.order.knows = err == nil
	s.order.mu.Unlock()
	if err != nil || s.program == nil {
		return err
	}
	return s.program.Restore(r)
}
