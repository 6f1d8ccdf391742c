package record

import (
	"encoding/json"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// The methods of a machine that change it. Each records its call first.

// Start implements the method of [member.Machine], as all that follow do.
func (r *Recorder) Start(now protocol.Time) {
	r.note(start, now, 0, 0)
	r.Machine.Start(now)
}

// Settle ends a step.
func (r *Recorder) Settle(now protocol.Time) {
	r.note(settle, now, 0, 0)
	r.Machine.Settle(now)
}

// Receive takes a frame.
func (r *Recorder) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	r.note(receive, now, from, 0, frame)
	err := r.Machine.Receive(now, from, frame)
	r.did(numberOf(err != nil))
	return err
}

// ReceiveBuffer provides the memory for a long frame.
func (r *Recorder) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	r.note(receiveBuffer, r.now, from, uint64(size), head)
	b := r.Machine.ReceiveBuffer(from, head, size)
	r.did(uint64(len(b)))
	return b
}

// BufferFilled takes a frame whose body is in that memory.
func (r *Recorder) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	r.note(bufferFilled, now, from, uint64(len(head)), head, body)
	err := r.Machine.BufferFilled(now, from, head, body)
	r.did(numberOf(err != nil))
	return err
}

// Up reports a connection.
func (r *Recorder) Up(now protocol.Time, peer protocol.Rank) {
	r.note(up, now, peer, 0)
	r.Machine.Up(now, peer)
}

// Down reports that a connection is lost.
func (r *Recorder) Down(now protocol.Time, peer protocol.Rank) {
	r.note(down, now, peer, 0)
	r.Machine.Down(now, peer)
}

// Writable reports that the queue of a peer has space again.
func (r *Recorder) Writable(now protocol.Time, peer protocol.Rank) {
	r.note(writable, now, peer, 0)
	r.Machine.Writable(now, peer)
}

// Next returns a frame to send.
func (r *Recorder) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	r.note(next, now, 0, 0)
	if to, head, body, ok = r.Machine.Next(now); ok {
		r.did(uint64(to), uint64(len(head)+len(body)))
		r.didBytes(head)
		r.didBytes(body)
	}
	return to, head, body, ok
}

// SendFailed reports that a frame was not sent.
func (r *Recorder) SendFailed(now protocol.Time, full bool) {
	r.note(sendFailed, now, 0, numberOf(full))
	r.Machine.SendFailed(now, full)
}

// recordedReport is a report in a file: a cause is a text.
type recordedReport struct {
	Incarnation   uint64
	Alive, Silent bool
	Cause         string
}

// Report takes in the report of a detector.
func (r *Recorder) Report(now protocol.Time, report member.Report) {
	recorded := recordedReport{Incarnation: report.Incarnation, Alive: report.Alive, Silent: report.Silent}
	if report.Cause != nil {
		recorded.Cause = report.Cause.Error()
	}
	r.note(reported, now, report.Rank, 0, encoded(recorded))
	r.Machine.Report(now, report)
}

// SetImpaired says whether this process lacks the means to reach others.
func (r *Recorder) SetImpaired(now protocol.Time, impaired bool) {
	r.note(setImpaired, now, 0, numberOf(impaired))
	r.Machine.SetImpaired(now, impaired)
}

// Join asks the group for a view with a candidate.
func (r *Recorder) Join(now protocol.Time, candidate membership.Member, replace bool, answer func(member.JoinAnswer)) {
	r.note(join, now, 0, numberOf(replace), encoded(candidate))
	r.Machine.Join(now, candidate, replace, answer)
}

// SetMeta asks for a view in which this member has another meta.
func (r *Recorder) SetMeta(now protocol.Time, meta string) error {
	r.note(setMeta, now, 0, 0, []byte(meta))
	err := r.Machine.SetMeta(now, meta)
	r.did(numberOf(err != nil))
	return err
}

// Saved says that the state is saved, or why it is not.
func (r *Recorder) Saved(now protocol.Time, err error) {
	r.note(saved, now, 0, numberOf(err != nil))
	r.Machine.Saved(now, err)
}

// Received says that the program has received something that was delivered before.
func (r *Recorder) Received(now protocol.Time) {
	r.note(received, now, 0, 0)
	r.Machine.Received(now)
}

// SetSynced asks for a view in which this member has the state of the group.
func (r *Recorder) SetSynced(now protocol.Time) {
	r.note(setSynced, now, 0, 0)
	r.Machine.SetSynced(now)
}

// Leave asks for a view without this member.
func (r *Recorder) Leave(now protocol.Time) {
	r.note(leave, now, 0, 0)
	r.Machine.Leave(now)
}

// Removed says that a member of a later view does not let this one connect.
func (r *Recorder) Removed(now protocol.Time, view uint64, holder *membership.Member) {
	r.note(removed, now, 0, view, encoded(holder))
	r.Machine.Removed(now, view, holder)
}

// ForceView lets some members decide the next view without a quorum.
func (r *Recorder) ForceView(now protocol.Time, ranks []protocol.Rank) error {
	r.note(forceView, now, 0, 0, encoded(ranks))
	err := r.Machine.ForceView(now, ranks)
	r.did(numberOf(err != nil))
	return err
}

// Evict asks for a view without a member.
func (r *Recorder) Evict(now protocol.Time, rank protocol.Rank, incarnation uint64, cause membership.Cause) error {
	r.note(evict, now, rank, incarnation, []byte{byte(cause)})
	err := r.Machine.Evict(now, rank, incarnation, cause)
	r.did(numberOf(err != nil))
	return err
}

// RaiseVersion asks for a view with a higher protocol version.
func (r *Recorder) RaiseVersion(now protocol.Time, version uint16) error {
	r.note(raiseVersion, now, 0, uint64(version))
	err := r.Machine.RaiseVersion(now, version)
	r.did(numberOf(err != nil))
	return err
}

// Learn takes decisions from a member that has joined since the view of this one.
func (r *Recorder) Learn(now protocol.Time, d membership.Decisions) error {
	r.note(learn, now, 0, 0, d.Encode(nil))
	err := r.Machine.Learn(now, d)
	r.did(numberOf(err != nil))
	return err
}

// Write queues a segment to broadcast.
func (r *Recorder) Write(payload []byte, remaining int) error {
	r.note(write, r.now, 0, uint64(remaining), payload)
	err := r.Machine.Write(payload, remaining)
	r.did(numberOf(err != nil))
	return err
}

// WriteTopic queues the first segment of a message with a topic, which was checked.
func (r *Recorder) WriteTopic(topic string, payload []byte, remaining int) error {
	r.note(writeTopic, r.now, 0, uint64(remaining), []byte{byte(len(topic))}, []byte(topic), payload)
	err := r.Machine.WriteTopic(topic, payload, remaining)
	r.did(numberOf(err != nil))
	return err
}

// Trace marks the next message that is written.
func (r *Recorder) Trace() {
	r.note(trace, r.now, 0, 0)
	r.Machine.Trace()
}

// Abandon gives up the rest of a message.
func (r *Recorder) Abandon() {
	r.note(abandon, r.now, 0, 0)
	r.Machine.Abandon()
}

// FlushBatch sends what waits for a batch.
func (r *Recorder) FlushBatch() {
	r.note(flushBatch, r.now, 0, 0)
	r.Machine.FlushBatch()
}

// Poll asks which members have what was broadcast.
func (r *Recorder) Poll(now protocol.Time) uint64 {
	r.note(poll, now, 0, 0)
	upTo := r.Machine.Poll(now)
	r.did(upTo)
	return upTo
}

// PollProcessed asks whose programs have processed what was broadcast.
func (r *Recorder) PollProcessed(now protocol.Time) uint64 {
	r.note(pollProcessed, now, 0, 0)
	upTo := r.Machine.PollProcessed(now)
	r.did(upTo)
	return upTo
}

// NoteProcessed says what the program has processed of a queue.
func (r *Recorder) NoteProcessed(now protocol.Time, id, position uint64) {
	r.note(noteProcessed, now, protocol.Rank(id), position)
	r.Machine.NoteProcessed(now, id, position)
}

// Deliver takes the next message out.
func (r *Recorder) Deliver(now protocol.Time) (stream.Message, bool) {
	r.note(deliver, now, 0, 0)
	m, ok := r.Machine.Deliver(now)
	return r.delivered(m, ok)
}

// DeliverEach takes the next messages out: each is an input.
func (r *Recorder) DeliverEach(now protocol.Time, most int, take func(*stream.Message)) {
	deliverEach(most, take, func() (stream.Message, bool) { return r.Deliver(now) })
}

func deliverEach(most int, take func(*stream.Message), deliver func() (stream.Message, bool)) {
	for range most {
		m, ok := deliver()
		if !ok {
			return
		}
		take(&m)
	}
}

func (r *Recorder) delivered(m stream.Message, ok bool) (stream.Message, bool) {
	if ok {
		r.did(uint64(m.Root), m.View, m.Lost, uint64(len(m.Data)))
		r.didBytes(m.Data)
	}
	return m, ok
}

// Subscribe begins a queue for the messages of a topic.
func (r *Recorder) Subscribe(topic string) (id uint64) {
	r.note(subscribe, r.now, 0, 0, []byte(topic))
	id = r.Machine.Subscribe(topic)
	r.did(id)
	return id
}

// Unsubscribe ends it.
func (r *Recorder) Unsubscribe(now protocol.Time, id uint64) {
	r.note(unsubscribe, now, 0, id)
	r.Machine.Unsubscribe(now, id)
}

// DeliverTopic takes the next message out of it.
func (r *Recorder) DeliverTopic(now protocol.Time, id uint64) (stream.Message, bool) {
	r.note(deliverTopic, now, 0, id)
	m, ok := r.Machine.DeliverTopic(now, id)
	return r.delivered(m, ok)
}

// DeliverTopicEach takes the next messages out of it: each is an input.
func (r *Recorder) DeliverTopicEach(now protocol.Time, id uint64, most int, take func(*stream.Message)) {
	deliverEach(most, take, func() (stream.Message, bool) { return r.DeliverTopic(now, id) })
}

// SendDirect sends a message to a member.
func (r *Recorder) SendDirect(to protocol.Rank, head, body []byte, release func()) error {
	r.note(sendDirect, r.now, to, uint64(len(head)), head, body)
	err := r.Machine.SendDirect(to, head, body, release)
	r.did(numberOf(err != nil))
	return err
}

// DeliverDirect takes the next message of another member out.
func (r *Recorder) DeliverDirect() (p2p.Message, bool) {
	r.note(deliverDirect, r.now, 0, 0)
	m, ok := r.Machine.DeliverDirect()
	if ok {
		r.did(uint64(m.From), uint64(len(m.Data)))
		r.didBytes(m.Data)
	}
	return m, ok
}

// FlushDirect acknowledges what has arrived.
func (r *Recorder) FlushDirect() bool {
	r.note(flushDirect, r.now, 0, 0)
	idle := r.Machine.FlushDirect()
	r.did(numberOf(idle))
	return idle
}

// encoded encodes what is rare.
func encoded(v any) []byte {
	b, _ := json.Marshal(v) // they are numbers and texts only
	return b
}
