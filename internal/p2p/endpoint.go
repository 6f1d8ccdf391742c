package p2p

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/queue"
	"github.com/pleach-go/pleach/protocol"
)

// Endpoint is one member's part.
type Endpoint struct {
	config   Config
	view     uint64
	channels []*channel            // by rank; nil: not in the view
	former   []uint64              // by rank: the last session that is void
	ready    queue.Queue[*channel] // those that may have something to send
	inbox    queue.Queue[Message]
	due      protocol.Time
	last     *channel // that the frame handed out last is for
	sent     kind     // and what it was
	buffer   []byte
}

// Message is what another member has sent: head and body, one after the other. Its
// memory is the receiver's.
type Message struct {
	From protocol.Rank
	Data []byte
}

// ErrBusy says that too much is waiting for a member already.
var ErrBusy = errors.New("p2p: too much is waiting to be sent")

// GoneError says that a member cannot be sent to, because it is not in the view.
type GoneError struct {
	Rank protocol.Rank
	View uint64
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("p2p: rank %d is not in view %d", e.Rank, e.View)
}

// New makes a courier, who knows nobody yet: see [Endpoint.Install].
func New(c Config) (*Endpoint, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Endpoint{config: c, due: protocol.Never}, nil
}

// Install says who is there now. Channels to those who are not, or not as the
// same incarnation, end with all that is in them.
func (c *Endpoint) Install(_ protocol.Time, v *membership.View) {
	c.view = v.Number
	for int(v.Slots) > len(c.channels) {
		c.channels = append(c.channels, nil)
		c.former = append(c.former, 0)
	}
	for r, ch := range c.channels {
		m, ok := v.Member(protocol.Rank(r))
		if ch != nil && (!ok || m.Incarnation != ch.incarnation) {
			c.former[r] = max(c.former[r], ch.session)
			ch.out.abandon()
			ch.control = control{ackAt: protocol.Never}
			c.channels[r], ch = nil, nil
		}
		if ok && ch == nil && protocol.Rank(r) != c.config.Rank {
			c.channels[r] = newChannel(protocol.Rank(r), m.Incarnation)
		}
	}
}

// channel returns the channel to a member, or nil.
func (c *Endpoint) channel(r protocol.Rank) *channel {
	if r < 0 || int(r) >= len(c.channels) {
		return nil
	}
	return c.channels[r]
}

// Send sends a message: head and body, one after the other. Both are kept until
// they have arrived, and must not be changed. It fails with [ErrBusy], or with a
// [*GoneError].
func (c *Endpoint) Send(to protocol.Rank, head, body []byte) error {
	return c.SendOwned(to, head, body, nil)
}

// SendOwned is like Send. If it returns nil, back is called when neither head nor body is
// needed any more: the message has arrived, or its receiver is gone.
func (c *Endpoint) SendOwned(to protocol.Rank, head, body []byte, release func()) error {
	ch := c.channel(to)
	n := len(head) + len(body)
	switch {
	case ch == nil:
		return &GoneError{to, c.view}
	case n > c.config.MaxMessage:
		return fmt.Errorf("p2p: %d bytes are too long: %d at most", n, c.config.MaxMessage)
	case ch.out.queue.Len() > 0 && ch.out.bytes+n > c.config.QueueBytes:
		return ErrBusy
	}
	ch.out.push(head, body, c.config.SegmentSize, release)
	c.wake(ch)
	return nil
}

// Deliver returns the next message that has come.
func (c *Endpoint) Deliver() (Message, bool) {
	if c.inbox.Len() == 0 {
		return Message{}, false
	}
	return c.inbox.Pop(), true
}

// Idle reports whether everything that was sent has arrived.
func (c *Endpoint) Idle() bool {
	for _, ch := range c.channels {
		if ch != nil && ch.out.queue.Len() > 0 {
			return false
		}
	}
	return true
}

// wake sees to it that a channel is asked for frames.
func (c *Endpoint) wake(ch *channel) {
	if !ch.ready {
		ch.ready = true
		c.ready.Push(ch)
	}
}

// Up says that there is a connection to a peer. What was sent before may have been
// lost, so it is asked.
func (c *Endpoint) Up(_ protocol.Time, peer protocol.Rank) {
	if ch := c.channel(peer); ch != nil {
		ch.out.blocked = false
		ch.control.poll = ch.out.base < ch.out.next
		c.wake(ch)
	}
}

// Down says that there is no connection any more. Who asks next finds out whether
// there is one again.
func (c *Endpoint) Down(protocol.Time, protocol.Rank) {}

// Writable says that a peer can be sent to again.
func (c *Endpoint) Writable(_ protocol.Time, peer protocol.Rank) {
	if ch := c.channel(peer); ch != nil {
		ch.out.blocked = false
		c.wake(ch)
	}
}
