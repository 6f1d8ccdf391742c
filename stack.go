package pleach

import (
	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// stack is the protocol stack that a group's node drives: streams carry broadcasts,
// the membership protocol agrees on views, neighbors exchange heartbeats, and a unicast
// channel carries the messages of collectives. Their frames share connections; the first byte tells them apart.
type stack struct {
	stream *stream.Member
	views  *membership.Machine // nil: the group is static
	heart  *heartbeat.Machine  // nil: the group is static
	now    protocol.Time       // of the present call

	unicast unicast // nil: there is none

	// changed says that the membership protocol may have an answer or a new state:
	// the group looks only then, not after every message.
	changed bool

	coordinators []membership.Member // connected to in advance; see preconnect
	flushing     bool                // a view waits for the streams to reach its cut
	last         byte                // the first byte of the frame that Next returned last
	buffer       []byte
	// onInstall is called with every view, after the streams have installed it.
	onInstall func(*membership.View)
}

// First bytes of frames that are not a stream's.
const (
	viewFrame      = 0x80
	unicastFrame   = p2p.FrameType
	heartbeatFrame = heartbeat.FrameType
)

// unicast is a reliable ordered channel from member to member. Its frames begin with
// unicastFrame.
type unicast interface {
	ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte
	Receive(now protocol.Time, from protocol.Rank, head, body []byte) error
	Up(now protocol.Time, peer protocol.Rank)
	Down(now protocol.Time, peer protocol.Rank)
	Writable(now protocol.Time, peer protocol.Rank)
	Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool)
	SendFailed(now protocol.Time, full bool)
	Deadline() protocol.Time
	// Install begins a view.
	Install(now protocol.Time, v *membership.View)
}

// Receive implements [node.Protocol].
func (p *stack) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	p.now = now
	p.heard(now, from)
	switch {
	case len(frame) == 1 && frame[0] == heartbeatFrame && p.heart != nil:
		return nil
	case len(frame) > 0 && frame[0] == viewFrame && p.views != nil:
		p.changed = true
		err := p.views.Receive(now, from, frame[1:])
		p.flushStep()
		return err
	case len(frame) > 0 && frame[0] == unicastFrame && p.unicast != nil:
		return p.unicast.Receive(now, from, frame, nil)
	}
	err := p.stream.Receive(now, from, frame)
	p.flushStep()
	return err
}

// heard records a sign of life of a peer.
func (p *stack) heard(now protocol.Time, peer protocol.Rank) {
	if p.heart != nil {
		p.heart.Heard(now, peer)
	}
}

// ReceiveBuffer implements [node.BufferProvider].
func (p *stack) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	if head[0] == unicastFrame && p.unicast != nil {
		return p.unicast.ReceiveBuffer(from, head, size)
	}
	return p.stream.ReceiveBuffer(from, head, size)
}

// BufferFilled implements [node.BufferProvider].
func (p *stack) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	p.now = now
	p.heard(now, from)
	if head[0] == unicastFrame {
		return p.unicast.Receive(now, from, head, body)
	}
	err := p.stream.BufferFilled(now, from, head, body)
	p.flushStep()
	return err
}

// flushStep tells the views when the streams have what a cut needs.
func (p *stack) flushStep() (flushed bool) {
	if !p.flushing || !p.stream.Flushed() {
		return false
	}
	p.flushing, p.changed = false, true
	p.views.LogFlushed(p.now)
	return true
}

// Up implements [node.Protocol].
func (p *stack) Up(now protocol.Time, peer protocol.Rank) {
	p.now = now
	p.heard(now, peer)
	p.stream.Up(now, peer)
	if p.views != nil {
		p.changed = true
		p.views.Up(now, peer)
	}
	if p.unicast != nil {
		p.unicast.Up(now, peer)
	}
}

// Down implements [node.Protocol].
func (p *stack) Down(now protocol.Time, peer protocol.Rank) {
	p.stream.Down(now, peer)
	if p.unicast != nil {
		p.unicast.Down(now, peer)
	}
}

// Writable implements [node.Protocol].
func (p *stack) Writable(now protocol.Time, peer protocol.Rank) {
	p.stream.Writable(now, peer)
	if p.unicast != nil {
		p.unicast.Writable(now, peer)
	}
}

// Next implements [node.Protocol]. Frames of view changes go first: all members wait
// for them.
func (p *stack) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	p.now, p.last = now, 0
	if p.views != nil {
		p.changed = p.changed || p.views.Deadline() <= now
		if to, head, ok = p.views.Next(now); ok {
			return to, p.mark(viewFrame, head), nil, true
		}
	}
	if p.heart != nil {
		if to, ok = p.heart.Next(now); ok {
			return to, p.mark(heartbeatFrame, nil), nil, true
		}
	}
	if p.unicast != nil {
		if to, head, body, ok = p.unicast.Next(now); ok {
			p.last = unicastFrame
			return to, head, body, true
		}
	}
	to, head, body, ok = p.stream.Next(now)
	if !ok && p.flushStep() { // time may be all that a flush has waited for
		return p.Next(now)
	}
	return to, head, body, ok
}

// mark prefixes a frame with its first byte.
func (p *stack) mark(first byte, frame []byte) []byte {
	p.last = first
	p.buffer = append(append(p.buffer[:0], first), frame...)
	return p.buffer
}

// SendFailed implements [node.Protocol]. The membership protocol resends
// what is not acknowledged, and further heartbeats follow.
func (p *stack) SendFailed(now protocol.Time, full bool) {
	switch p.last {
	case viewFrame, heartbeatFrame:
	case unicastFrame:
		p.unicast.SendFailed(now, full)
	default:
		p.stream.SendFailed(now, full)
	}
}

// Deadline implements [node.Protocol].
func (p *stack) Deadline() protocol.Time {
	due := p.stream.Deadline()
	if p.views != nil {
		due = min(due, p.views.Deadline())
	}
	if p.heart != nil {
		due = min(due, p.heart.Deadline())
	}
	if p.unicast != nil {
		due = min(due, p.unicast.Deadline())
	}
	return due
}

// The stack is the log that view changes cut.

// Freeze implements [membership.Log].
func (p *stack) Freeze() []membership.Position { return membershipPositions(p.stream.Freeze()) }

// Thaw implements [membership.Log].
func (p *stack) Thaw() {
	p.flushing = false
	p.stream.Thaw()
}

// Flush implements [membership.Log].
func (p *stack) Flush(cut []membership.Position) {
	p.flushing = true
	p.stream.Flush(p.now, streamPositions(cut))
}

// Flushed implements [membership.Log].
func (p *stack) Flushed() bool { return p.stream.Flushed() }

// Install implements [membership.Log].
func (p *stack) Install(v *membership.View) {
	p.flushing = false
	// It fails only for a shape of tree that could not be laid at the start.
	_ = p.stream.Install(p.now, v.Number, v.Slots, memberIDs(v))
	if p.unicast != nil {
		p.unicast.Install(p.now, v)
	}
	p.onInstall(v)
}

func memberIDs(v *membership.View) []stream.MemberID {
	ids := make([]stream.MemberID, len(v.Members))
	for i, m := range v.Members {
		ids[i] = stream.MemberID{Rank: m.Rank, Incarnation: m.Incarnation}
	}
	return ids
}

func membershipPositions(from []stream.Position) []membership.Position {
	positions := make([]membership.Position, len(from))
	for i, p := range from {
		positions[i] = membership.Position{Root: p.Rank, Incarnation: p.Incarnation, Next: p.Next, Holder: p.Holder}
	}
	return positions
}

func streamPositions(from []membership.Position) []stream.Position {
	positions := make([]stream.Position, len(from))
	for i, p := range from {
		positions[i] = stream.Position{MemberID: stream.MemberID{Rank: p.Root, Incarnation: p.Incarnation}, Next: p.Next, Holder: p.Holder}
	}
	return positions
}
