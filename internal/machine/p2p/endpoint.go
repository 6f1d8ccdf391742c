package p2p

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Endpoint is one member's side of its channels. See the package comment for how to
// drive it. Make one with [New].
type Endpoint struct {
	config      Config
	view        uint64
	incarnation uint64                // of this member
	members     membership.Members    // of the view
	channels    []*channel            // by rank; nil: not in the view, or not used yet
	ready       queue.Queue[*channel] // those that may have a frame to send
	inbox       queue.Queue[Message]
	due         protocol.Time
	last        *channel // of the frame that Next returned last
	sent        kind     // the type of that frame
	none        segment  // of frames that carry none
	buffer      []byte
}

// Message is a message of another member: its head followed by its body. The
// receiver owns the memory.
type Message struct {
	From protocol.Rank
	Data []byte
}

// ErrBusy is returned by Send when the queue of the receiver is full.
var ErrBusy = errors.New("p2p: too much is waiting to be sent")

// GoneError is returned by Send when the receiver is not in the view.
type GoneError struct {
	Rank protocol.Rank
	View uint64
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("p2p: rank %d is not in view %d", e.Rank, e.View)
}

// New makes an endpoint without channels; see [Endpoint.Install].
func New(c Config) (*Endpoint, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Endpoint{config: c, due: protocol.Never}, nil
}

// Install installs a view. Channels to members that are not in it, or that have
// another incarnation, end with all their messages.
func (e *Endpoint) Install(_ protocol.Time, v *membership.View) {
	e.view = v.Number
	if self, ok := v.Member(e.config.Rank); ok {
		e.incarnation = self.Incarnation
	}
	for int(v.Slots) > len(e.channels) {
		e.channels = append(e.channels, nil)
	}
	for gone := range e.members.Since(v.Members) {
		if ch := e.channels[gone.Rank]; ch != nil {
			ch.out.abandon()
			ch.control = control{ackAt: protocol.Never}
			e.channels[gone.Rank] = nil
		}
	}
	e.members = v.Members
}

// channel returns the channel to a member, or nil if it is not in the view. It makes the
// channel when that is first used: a member of a large group talks to few of the others.
func (e *Endpoint) channel(r protocol.Rank) *channel {
	ch := e.used(r)
	if ch == nil && r != e.config.Rank {
		if m := e.members.Find(r); m != nil {
			ch = newChannel(m.Rank, m.Incarnation)
			e.channels[r] = ch
		}
	}
	return ch
}

// used returns the channel to a member, or nil if nothing has used it yet.
func (e *Endpoint) used(r protocol.Rank) *channel {
	if r < 0 || int(r) >= len(e.channels) {
		return nil
	}
	return e.channels[r]
}

// Send sends a message: head followed by body. The endpoint keeps both until they
// have arrived, and they must not change until then. Send returns [ErrBusy] or a
// [*GoneError] if it does not take the message.
func (e *Endpoint) Send(to protocol.Rank, head, body []byte) error {
	return e.SendOwned(to, head, body, nil)
}

// SendOwned is like Send. If it returns nil, the endpoint calls release when it needs
// neither head nor body any more: the message has arrived, or its receiver has left
// the view.
func (e *Endpoint) SendOwned(to protocol.Rank, head, body []byte, release func()) error {
	ch := e.channel(to)
	n := len(head) + len(body)
	switch {
	case ch == nil:
		return &GoneError{to, e.view}
	case n > e.config.MaxMessage:
		return fmt.Errorf("p2p: %d bytes are too long: %d at most", n, e.config.MaxMessage)
	case ch.out.queue.Len() > 0 && ch.out.bytes+n > e.config.QueueBytes:
		return ErrBusy
	}
	ch.out.push(head, body, e.config.SegmentSize, release)
	e.wake(ch)
	return nil
}

// Deliver returns the next message that has arrived.
func (e *Endpoint) Deliver() (Message, bool) {
	if e.inbox.Len() == 0 {
		return Message{}, false
	}
	return e.inbox.Pop(), true
}

// Idle reports whether all messages have arrived.
func (e *Endpoint) Idle() bool {
	for _, ch := range e.channels {
		if ch != nil && ch.out.queue.Len() > 0 {
			return false
		}
	}
	return true
}

// Flush notes which messages were sent until now, for [Endpoint.Flushed].
func (e *Endpoint) Flush() {
	for _, ch := range e.channels {
		if ch != nil {
			ch.out.flush = ch.out.base + uint64(ch.out.queue.Len())
		}
	}
}

// Flushed reports whether the messages that were sent before the last Flush have arrived. It does
// not wait for later ones: a member that answers requests may send without end.
func (e *Endpoint) Flushed() bool {
	for _, ch := range e.channels {
		if ch != nil && ch.out.base < ch.out.flush {
			return false
		}
	}
	return true
}

// FlushAcks makes acknowledgments that wait for a frame to piggyback on due now. A member
// that ends does so, because the others' messages would seem lost otherwise.
func (e *Endpoint) FlushAcks() {
	for _, ch := range e.channels {
		if ch != nil && ch.control.ackAt != protocol.Never {
			ch.control.ack, ch.control.ackAt = true, protocol.Never
			e.wake(ch)
		}
	}
}

// wake makes Next ask a channel for frames.
func (e *Endpoint) wake(ch *channel) {
	if !ch.ready {
		ch.ready = true
		e.ready.Push(ch)
	}
}

// Up reports a connection to a peer. Segments in flight may have been lost with the
// last one, so the peer is polled.
func (e *Endpoint) Up(_ protocol.Time, peer protocol.Rank) {
	if ch := e.used(peer); ch != nil {
		ch.out.blocked = false
		ch.control.poll = ch.out.base < ch.out.next
		e.wake(ch)
	}
}

// Down reports a lost connection. The next poll finds out whether there is one
// again.
func (e *Endpoint) Down(protocol.Time, protocol.Rank) {}

// Writable reports that the transport takes frames for a peer again.
func (e *Endpoint) Writable(_ protocol.Time, peer protocol.Rank) {
	if ch := e.used(peer); ch != nil {
		ch.out.blocked = false
		e.wake(ch)
	}
}
