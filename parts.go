package pleach

import (
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
)

// parts is what a group's node drives: streams, which carry messages, and views,
// which say among whom. Their frames share connections; views' have a byte in
// front that no frame of a stream begins with.
type parts struct {
	stream *stream.Member
	views  *membership.Machine // nil: who is in the group never changes
	now    protocol.Time       // of the present call

	courier carrier // nil: there is none

	// changed says that the views may have something to say: they are asked only
	// then, not after every message.
	changed bool

	leaders  []membership.Member // who coordinate, and are connected to for that; see greet
	flushing bool                // views wait for the streams to have everything up to a cut
	last     byte                // the byte in front of the frame handed out last
	buffer   []byte
	// installed is told of every view, when the streams are in it.
	installed func(*membership.View)
}

// Bytes in front of frames that are not a stream's.
const (
	viewFrame    = 0x80
	courierFrame = p2p.FrameType
)

// carrier carries messages from one member to another, for collectives. Its frames
// have the byte in front already.
type carrier interface {
	ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte
	Receive(now protocol.Time, from protocol.Rank, head, body []byte) error
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	SendFailed(now protocol.Time, full bool)
	Deadline() protocol.Time
	// Install says who is there now.
	Install(now protocol.Time, v *membership.View)
}

// Receive implements [node.Protocol].
func (p *parts) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	p.now = now
	switch {
	case len(frame) > 0 && frame[0] == viewFrame && p.views != nil:
		p.changed = true
		err := p.views.Receive(now, from, frame[1:])
		p.settle()
		return err
	case len(frame) > 0 && frame[0] == courierFrame && p.courier != nil:
		return p.courier.Receive(now, from, frame, nil)
	}
	err := p.stream.Receive(now, from, frame)
	p.settle()
	return err
}

// ReceiveBuffer implements [node.BufferProvider].
func (p *parts) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	if head[0] == courierFrame && p.courier != nil {
		return p.courier.ReceiveBuffer(from, head, size)
	}
	return p.stream.Place(from, head, size)
}

// BufferFilled implements [node.BufferProvider].
func (p *parts) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	p.now = now
	if head[0] == courierFrame {
		return p.courier.Receive(now, from, head, body)
	}
	err := p.stream.ReceivePlaced(now, from, head, body)
	p.settle()
	return err
}

// settle tells the views when the streams have what they were asked for.
func (p *parts) settle() (settled bool) {
	if !p.flushing || !p.stream.Flushed() {
		return false
	}
	p.flushing, p.changed = false, true
	p.views.Settle(p.now)
	return true
}

// Up implements [node.Protocol].
func (p *parts) Up(now protocol.Time, peer protocol.Rank) {
	p.now = now
	p.stream.Up(now, peer)
	if p.views != nil {
		p.changed = true
		p.views.Up(now, peer)
	}
	if p.courier != nil {
		p.courier.Up(now, peer)
	}
}

// Down implements [node.Protocol].
func (p *parts) Down(now protocol.Time, peer protocol.Rank) {
	p.stream.Down(now, peer)
	if p.courier != nil {
		p.courier.Down(now, peer)
	}
}

// Writable implements [node.Protocol].
func (p *parts) Writable(now protocol.Time, peer protocol.Rank) {
	p.stream.Writable(now, peer)
	if p.courier != nil {
		p.courier.Writable(now, peer)
	}
}

// ThrottledUntil implements [node.Throttler].
func (p *parts) ThrottledUntil(from protocol.Rank) protocol.Time { return p.stream.Congested(from) }

// Next implements [node.Protocol]. Views go first: everybody waits for them.
func (p *parts) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	p.now, p.last = now, 0
	if p.views != nil {
		p.changed = p.changed || p.views.Deadline() <= now
		if to, head, ok = p.views.Next(now); ok {
			return to, p.mark(viewFrame, head), nil, true
		}
	}
	if p.courier != nil {
		if to, head, body, ok = p.courier.Next(now); ok {
			p.last = courierFrame
			return to, head, body, true
		}
	}
	to, head, body, ok = p.stream.Next(now)
	if !ok && p.settle() { // time may be all that a flush has waited for
		return p.Next(now)
	}
	return to, head, body, ok
}

// mark puts a byte in front of a frame.
func (p *parts) mark(first byte, frame []byte) []byte {
	p.last = first
	p.buffer = append(append(p.buffer[:0], first), frame...)
	return p.buffer
}

// SendFailed implements [node.Protocol]. Views send again what is not answered.
func (p *parts) SendFailed(now protocol.Time, full bool) {
	switch p.last {
	case viewFrame:
	case courierFrame:
		p.courier.SendFailed(now, full)
	default:
		p.stream.SendFailed(now, full)
	}
}

// Deadline implements [node.Protocol].
func (p *parts) Deadline() protocol.Time {
	due := p.stream.Deadline()
	if p.views != nil {
		due = min(due, p.views.Deadline())
	}
	if p.courier != nil {
		due = min(due, p.courier.Deadline())
	}
	return due
}

// The streams as the log that views cut.

// Freeze implements [membership.Log].
func (p *parts) Freeze() []membership.Have { return havesOf(p.stream.Freeze()) }

// Thaw implements [membership.Log].
func (p *parts) Thaw() {
	p.flushing = false
	p.stream.Thaw()
}

// Flush implements [membership.Log].
func (p *parts) Flush(cut []membership.Have) {
	p.flushing = true
	p.stream.Flush(p.now, marksOf(cut))
}

// Flushed implements [membership.Log].
func (p *parts) Flushed() bool { return p.stream.Flushed() }

// Install implements [membership.Log].
func (p *parts) Install(v *membership.View) {
	p.flushing = false
	// It fails only for a shape of tree that could not be laid at the start.
	_ = p.stream.Install(p.now, v.Number, v.Slots, placesOf(v))
	if p.courier != nil {
		p.courier.Install(p.now, v)
	}
	p.installed(v)
}

func placesOf(v *membership.View) []stream.Place {
	places := make([]stream.Place, len(v.Members))
	for i, m := range v.Members {
		places[i] = stream.Place{Rank: m.Rank, Incarnation: m.Incarnation}
	}
	return places
}

func havesOf(marks []stream.Mark) []membership.Have {
	haves := make([]membership.Have, len(marks))
	for i, m := range marks {
		haves[i] = membership.Have{Root: m.Rank, Incarnation: m.Incarnation, Next: m.Next, Holder: m.Holder}
	}
	return haves
}

func marksOf(haves []membership.Have) []stream.Mark {
	marks := make([]stream.Mark, len(haves))
	for i, h := range haves {
		marks[i] = stream.Mark{Place: stream.Place{Rank: h.Root, Incarnation: h.Incarnation}, Next: h.Next, Holder: h.Holder}
	}
	return marks
}
