package stream

import (
	"github.com/pleach-go/pleach/protocol"
)

// Delivery hands segments to the program, as messages and in the order of their stream.

// deliver moves the segments of a flow before a number into the inbox as messages, and
// a notice for those that were given up.
func (m *Member) deliver(f *flow, upTo uint64) {
	for f.delivered < upTo {
		if kept := min(f.store.firstKept(f.delivered), upTo); kept > f.delivered {
			m.deliverLoss(f, kept)
			continue
		}
		seg, _ := f.store.get(f.delivered) // everything before next is kept or given up
		f.delivered++
		m.countSegment(f, &seg)
		if seg.batch {
			f.partial = partial{}
			_ = split(seg.payload(), func(message []byte) {
				m.deliverMessage(f, message, seg.labeled, nil)
				f.count.begun++
			})
		} else {
			if seg.begins {
				f.labeled = seg.labeled
				if size := len(seg.payload()) + int(seg.remaining); size > m.config.MaxMessage {
					m.refuseLength(f, size)
				}
			}
			if message, complete := f.partial.add(&seg, m.config.MaxMessage); complete {
				m.deliverMessage(f, message, f.labeled, seg.buffer)
			}
			if seg.begins {
				f.count.begun++
			}
		}
	}
}

// deliversOwn reports whether the program gets the messages of this member itself.
func (m *Member) deliversOwn() bool { return m.config.Replicate || m.config.Echo }

// deliverMessage puts a message into the inbox. If it has a label, that comes first. The
// buffer is that of its last segment.
func (m *Member) deliverMessage(f *flow, message []byte, labeled bool, buffer *reassemblyBuffer) {
	if !buffer.holds(message) {
		buffer = nil
	}
	next := Message{Root: f.root, Data: message, View: m.view}
	if len(message) > m.config.MaxMessage {
		m.refuseLength(f, len(message))
		return
	}
	if labeled {
		next.Label, next.Data = f.cutLabel(message)
	}
	switch {
	case next.Topic == "":
		next.Lease = buffer.lease()
		m.inbox.push(&m.inbox.main, next)
	case f != m.own.flow || m.config.Replicate:
		m.inbox.pushTopic(next, m.config.AllTopics, buffer)
	case m.config.AllTopics:
		m.inbox.push(&m.inbox.main, next)
	}
}

// refuseLength refuses a message that is longer than this member can receive. From here on the
// stream counts as lost, so the member does not acknowledge it.
func (m *Member) refuseLength(f *flow, size int) {
	if m.inbox.tooLong.size == 0 {
		m.inbox.tooLong.root, m.inbox.tooLong.size = f.root, size
	}
	if f.lost == 0 {
		f.lost = f.delivered
	}
}

// TooLong returns the sender and the size of the first message that was longer than this member
// can receive. Its driver ends the membership then.
func (m *Member) TooLong() (root protocol.Rank, size int, ok bool) {
	return m.inbox.tooLong.root, m.inbox.tooLong.size, m.inbox.tooLong.size > 0
}

// Deliver returns the next message or notice for the program, or false if there is
// none. Messages with a topic are for [Member.DeliverTopic], unless Config.AllTopics is
// set.
func (m *Member) Deliver(now protocol.Time) (Message, bool) {
	return m.deliverFrom(now, &m.inbox.main)
}

// DeliverEach calls take with each of the next messages and notices, so many at most. A
// message is take's until it returns. That costs less than a Deliver of each.
func (m *Member) DeliverEach(now protocol.Time, most int, take func(*Message)) {
	m.deliverEach(now, &m.inbox.main, most, take)
}

func (m *Member) deliverFrom(now protocol.Time, q *messageQueue) (message Message, ok bool) {
	m.deliverEach(now, q, 1, func(next *Message) { message, ok = *next, true })
	return message, ok
}

func (m *Member) deliverEach(now protocol.Time, q *messageQueue, most int, take func(*Message)) {
	for range min(most, q.Len()) {
		next := q.At(0)
		if next.Lost == 0 && !next.Begins {
			m.stats.Delivered++
			m.stats.DeliveredBytes += uint64(len(next.Data))
		}
		q.taken++
		next.Position = q.taken
		take(next)
		m.inbox.discard(q)
	}
	m.resume(now)
}

// resume continues deliveries that have waited for room in the inbox, if there is some now.
func (m *Member) resume(now protocol.Time) {
	if m.inbox.blocking && !m.inboxFull() {
		m.inbox.blocking = false
		m.grantWithheld()
	}
	if refused := m.inbox.refusing; refused && !m.inboxOverflows() {
		m.inbox.refusing = false
		for _, f := range m.scheduled {
			if f.pull.due == protocol.Never {
				f.pull.due = now // pull what was refused
				m.schedule(f, now)
			}
		}
	}
}

// inboxOverflows reports whether a segment that arrives must be refused. Flow control
// keeps the inbox below twice its limit, except for very short messages, which take more
// memory than their bytes on the wire. It records the refusal, so that Deliver schedules
// a pull.
func (m *Member) inboxOverflows() bool {
	limit := m.config.InboxBytes
	if !m.config.Drop {
		limit *= 2
	}
	if m.inbox.bytes+m.heldBytes <= limit {
		return false
	}
	m.inbox.refusing = true
	return true
}

// inboxFull reports whether this member accepts nothing more for now. It records that
// credits are withheld, so that Deliver grants them.
func (m *Member) inboxFull() bool {
	if !m.Full() {
		return false
	}
	m.inbox.blocking = true
	return true
}

// Withholding reports whether something waits for room in the inbox, so that a message which
// is delivered may make this member send.
func (m *Member) Withholding() bool { return m.inbox.blocking || m.inbox.refusing }

// Full reports whether the program receives too slowly: this member grants no more
// credits until it has received some messages.
func (m *Member) Full() bool { return m.inbox.bytes+m.heldBytes > m.config.InboxBytes }

// Pending returns how many messages and notices wait for [Member.Deliver].
func (m *Member) Pending() int { return m.inbox.main.Len() }
