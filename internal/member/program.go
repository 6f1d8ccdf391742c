package member

import (
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// What a program does with the streams. A driver calls these, and not the streams
// themselves, if it wants to see every input of the machine.

// Write queues a segment to broadcast; see [stream.Member.Write].
func (m *Machine) Write(payload []byte, remaining int) error {
	return m.stream.Write(payload, remaining)
}

// Abandon gives up the rest of a message that is written in part.
func (m *Machine) Abandon() { m.stream.Abandon() }

// FlushBatch sends what waits for a batch.
func (m *Machine) FlushBatch() { m.stream.FlushBatch() }

// Poll asks which members have what was broadcast; see [stream.Member.Poll].
func (m *Machine) Poll(now protocol.Time) uint64 { return m.stream.Poll(now) }

// Deliver takes the next message out, if there is one.
func (m *Machine) Deliver(now protocol.Time) (stream.Message, bool) { return m.stream.Deliver(now) }
