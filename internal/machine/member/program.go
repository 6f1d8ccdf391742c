package member

import (
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// What a program does with the streams. A driver calls these, and not the streams
// themselves, if it wants to see every input of the machine.

// Write queues a segment to broadcast; see [stream.Member.Write].
func (m *Machine) Write(payload []byte, remaining int) error {
	return m.stream.Write(payload, remaining)
}

// Trace marks the next message that is written; see [stream.Member.Trace].
func (m *Machine) Trace() { m.stream.Trace() }

// WriteLabeled queues the first segment of a message with a label; see
// [stream.Member.WriteLabeled].
func (m *Machine) WriteLabeled(label stream.Label, payload []byte, remaining int) error {
	return m.stream.WriteLabeled(label, payload, remaining)
}

// Abandon gives up the rest of a message that is written in part.
func (m *Machine) Abandon() { m.stream.Abandon() }

// FlushBatch sends what waits for a batch.
func (m *Machine) FlushBatch() { m.stream.FlushBatch() }

// Poll asks which members have what was broadcast; see [stream.Member.Poll].
func (m *Machine) Poll(now protocol.Time) uint64 { return m.stream.Poll(now) }

// PollProcessed asks whose programs have processed what was broadcast; see
// [stream.Member.PollProcessed].
func (m *Machine) PollProcessed(now protocol.Time) uint64 { return m.stream.PollProcessed(now) }

// NoteProcessed says what the program has processed; see [stream.Member.NoteProcessed].
func (m *Machine) NoteProcessed(now protocol.Time, id, position uint64) {
	m.stream.NoteProcessed(now, id, position)
}

// Deliver takes the next message out, if there is one.
func (m *Machine) Deliver(now protocol.Time) (stream.Message, bool) { return m.stream.Deliver(now) }

// DeliverEach takes the next messages out, so many at most.
func (m *Machine) DeliverEach(now protocol.Time, most int, take func(*stream.Message)) {
	m.stream.DeliverEach(now, most, take)
}

// Subscribe begins a queue for the messages of a topic.
func (m *Machine) Subscribe(topic string) (id uint64) { return m.stream.Subscribe(topic) }

// Unsubscribe ends it.
func (m *Machine) Unsubscribe(now protocol.Time, id uint64) { m.stream.Unsubscribe(now, id) }

// DeliverTopic takes the next message out of it, if there is one.
func (m *Machine) DeliverTopic(now protocol.Time, id uint64) (stream.Message, bool) {
	return m.stream.DeliverTopic(now, id)
}

// DeliverTopicEach takes the next messages out of it, so many at most.
func (m *Machine) DeliverTopicEach(now protocol.Time, id uint64, most int, take func(*stream.Message)) {
	m.stream.DeliverTopicEach(now, id, most, take)
}
