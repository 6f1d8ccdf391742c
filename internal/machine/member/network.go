package member

import (
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/protocol"
)

// What a driver passes in from the network, and what it sends: the methods of
// node.Protocol and node.BufferProvider. The frames of all protocols share connections;
// the first byte tells them apart.

// First bytes of frames that are not a stream's.
const (
	viewFrame      = 0x80
	unicastFrame   = p2p.FrameType
	heartbeatFrame = heartbeat.FrameType
	directFrame    = 0x83
)

// Unicast is a reliable ordered channel from member to member. Its frames begin with the
// byte p2p.FrameType.
type Unicast interface {
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

// Receive takes a frame. It returns an error if the frame is malformed.
func (m *Machine) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	m.now = now
	m.heard(now, from)
	switch {
	case len(frame) == 1 && frame[0] == heartbeatFrame && m.heart != nil:
		m.heart.Beat(from)
		return nil
	case len(frame) > 0 && frame[0] == viewFrame && m.views != nil:
		m.viewsChanged()
		return m.views.Receive(now, from, frame[1:])
	case len(frame) > 0 && frame[0] == unicastFrame && m.config.Unicast != nil:
		return m.config.Unicast.Receive(now, from, frame, nil)
	case len(frame) > 0 && frame[0] == directFrame && m.direct != nil:
		return m.direct.Receive(now, from, frame[1:], nil)
	}
	return m.stream.Receive(now, from, frame)
}

// heard records a sign of life of a peer.
func (m *Machine) heard(now protocol.Time, peer protocol.Rank) {
	if m.heart != nil {
		m.heart.Heard(now, peer)
	}
	if m.views != nil && m.views.Heard(peer) {
		m.viewsChanged()
	}
}

// ReceiveBuffer provides the memory for a long frame.
func (m *Machine) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	if head[0] == unicastFrame && m.config.Unicast != nil {
		return m.config.Unicast.ReceiveBuffer(from, head, size)
	}
	if head[0] == directFrame && m.direct != nil {
		return m.direct.ReceiveBuffer(from, head[1:], size-1)
	}
	return m.stream.ReceiveBuffer(from, head, size)
}

// BufferFilled takes a frame whose body is in the memory that ReceiveBuffer provided.
func (m *Machine) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	m.now = now
	m.heard(now, from)
	if head[0] == unicastFrame {
		return m.config.Unicast.Receive(now, from, head, body)
	}
	if head[0] == directFrame {
		return m.direct.Receive(now, from, head[1:], body)
	}
	return m.stream.BufferFilled(now, from, head, body)
}

// Up reports that a peer is connected.
func (m *Machine) Up(now protocol.Time, peer protocol.Rank) {
	m.now = now
	m.heard(now, peer)
	m.stream.Up(now, peer)
	if m.views != nil {
		m.viewsChanged()
		m.views.Up(now, peer)
		m.direct.Up(now, peer)
	}
	if m.config.Unicast != nil {
		m.config.Unicast.Up(now, peer)
	}
}

// Down reports that the connection to a peer is lost or could not be made.
func (m *Machine) Down(now protocol.Time, peer protocol.Rank) {
	m.stream.Down(now, peer)
	if m.config.Unicast != nil {
		m.config.Unicast.Down(now, peer)
	}
}

// Writable reports that the queue of a peer has space again.
func (m *Machine) Writable(now protocol.Time, peer protocol.Rank) {
	m.stream.Writable(now, peer)
	if m.direct != nil {
		m.direct.Writable(now, peer)
	}
	if m.config.Unicast != nil {
		m.config.Unicast.Writable(now, peer)
	}
}

// Next returns a frame to send, head followed by body, valid until the next call. Frames
// of view changes go first: all members wait for them.
func (m *Machine) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	m.now, m.last = now, 0
	if m.viewsAct(now) {
		to, head, m.acts = m.saver.next(now)
		if m.acts {
			return to, m.mark(viewFrame, head), nil, true
		}
		if c, asks := m.views.NextClaim(); asks {
			m.config.Ask(c)
		}
	}
	if m.heart != nil {
		to, ok = m.heart.Next(now)
		if ok {
			return to, m.mark(heartbeatFrame, nil), nil, true
		}
		if m.noteQuiet(now) {
			return m.Next(now)
		}
		to, head, body, ok = m.direct.Next(now)
		if ok {
			return to, m.mark(directFrame, head), body, true
		}
	}
	if m.config.Unicast != nil {
		to, head, body, ok = m.config.Unicast.Next(now)
		if ok {
			m.last = unicastFrame
			return to, head, body, true
		}
	}
	to, head, body, ok = m.stream.Next(now)
	if !ok && m.flushStep() {
		return m.Next(now)
	}
	return to, head, body, ok
}

// viewsAct reports whether something has happened, or is due, for which the membership
// protocol may act. Most steps are broadcasts, which it has no part in.
func (m *Machine) viewsAct(now protocol.Time) bool {
	if m.views == nil {
		return false
	}
	if m.saver.deadline() <= now {
		m.viewsChanged()
	}
	return m.acts
}

// Saved says that the state that Config.Save was called with last is saved, or why it is
// not.
func (m *Machine) Saved(now protocol.Time, err error) {
	m.enter(now)
	m.saver.saved(now, err)
}

// mark prefixes a frame with its first byte.
func (m *Machine) mark(first byte, frame []byte) []byte {
	m.last = first
	m.buffer = append(append(m.buffer[:0], first), frame...)
	return m.buffer
}

// SendFailed reports that the frame that Next returned last was not sent: the queue of
// the peer is full, or the peer is down. The membership protocol resends what is not
// acknowledged, and further heartbeats follow.
func (m *Machine) SendFailed(now protocol.Time, full bool) {
	switch m.last {
	case viewFrame, heartbeatFrame:
	case unicastFrame:
		m.config.Unicast.SendFailed(now, full)
	case directFrame:
		m.direct.SendFailed(now, full)
	default:
		m.stream.SendFailed(now, full)
	}
}

// Deadline returns when Next must be called again at the latest, or Never.
func (m *Machine) Deadline() protocol.Time {
	due := m.stream.Deadline()
	if m.views != nil {
		due = min(due, m.saver.deadline(), m.heart.Deadline(), m.direct.Deadline())
	}
	if m.config.Unicast != nil {
		due = min(due, m.config.Unicast.Deadline())
	}
	return due
}
