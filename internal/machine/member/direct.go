package member

import (
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/protocol"
)

// Channels for messages of programs to single members. They are separate from the channels of
// the collectives: neither waits for the other.

// makeDirect makes the channels. Their queues are bounded by what package direct puts on
// them.
func (m *Machine) makeDirect() (err error) {
	m.direct, err = p2p.New(p2p.Config{
		Rank: m.config.Self.Rank, WindowBytes: 1 << 20, QueueBytes: 1 << 30, MaxMessage: m.config.MaxDirect,
	})
	if err == nil {
		m.direct.Install(0, &m.config.View)
	}
	return err
}

// SendDirect sends a message to a member; see [p2p.Endpoint.SendOwned].
func (m *Machine) SendDirect(to protocol.Rank, head, body []byte, release func()) error {
	return m.direct.SendOwned(to, head, body, release)
}

// DeliverDirect takes the next message of another member out, if there is one.
func (m *Machine) DeliverDirect() (p2p.Message, bool) {
	if m.direct == nil {
		return p2p.Message{}, false
	}
	return m.direct.Deliver()
}

// FlushDirect notes what was sent to single members until now, for [Machine.DirectFlushed].
func (m *Machine) FlushDirect() {
	if m.direct != nil {
		m.direct.Flush()
	}
}

// DirectFlushed acknowledges what has arrived, and reports whether all that was sent before the last
// FlushDirect has.
func (m *Machine) DirectFlushed() bool {
	if m.direct == nil {
		return true
	}
	m.direct.FlushAcks()
	return m.direct.Flushed()
}
