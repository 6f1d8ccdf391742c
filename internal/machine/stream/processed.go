package stream

import (
	"slices"

	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/protocol"
)

// A receipt (stable.go) proves that members have received messages. A root can also ask
// whether their programs have processed them. The poll and its acknowledgments travel as
// those for receipts do. A member answers when its program has processed all messages of the
// root that were delivered before the poll, in every queue that has such messages.
//
// The program processes each queue in order. So when a poll arrives, a position in each queue
// is marked, and when the program has passed all marks, the poll is answered. Messages
// themselves cost nothing.

// messageQueue is a queue of messages for the program.
type messageQueue struct {
	queue.Queue[Message]
	taken     uint64        // messages and notices that were delivered to the driver
	processed uint64        // of these, how many the program has processed
	seen      uint64        // messages and notices when NoteProcessed was last called
	movedAt   protocol.Time // when the program last processed something, or had nothing to process
}

// total returns how many messages and notices have come into the queue.
func (q *messageQueue) total() uint64 { return q.taken + uint64(q.Len()) }

// lastOf returns how many messages and notices there are up to the last one of a root. The
// roots of those that were taken are not known any more, so all of them count.
func (q *messageQueue) lastOf(root protocol.Rank) uint64 {
	for i := q.Len() - 1; i >= 0; i-- {
		if m := q.At(i); m.Root == root && !m.Begins {
			return q.taken + uint64(i) + 1
		}
	}
	return q.taken
}

// processing is a member's part in acknowledging that programs have processed one flow.
type processing struct {
	acks
	done  uint64            // the number before which the program has processed everything
	next  uint64            // the number that marks are for; 0: none are set
	marks map[uint64]uint64 // by queue: how much of it the program has to process
}

// mainQueue is the ID of the main queue. Those of subscriptions begin with 1.
const mainQueue = 0

// queueOf returns a queue by its ID, or nil.
func (b *inbox) queueOf(id uint64) *messageQueue {
	if id == mainQueue {
		return &b.main
	}
	if s := b.topics.byID[id]; s != nil {
		return &s.queue
	}
	return nil
}

// PollProcessed asks whether the programs of all members have processed what this member has
// sent so far. When all have answered, Processed reaches the returned number.
func (m *Member) PollProcessed(now protocol.Time) uint64 {
	f := m.own.flow
	if p := &f.processing; p.wanted < f.next {
		p.wanted = f.next
		m.own.processedInterval = minPollInterval
		m.own.receipts.askedProcessed = m.own.sent()
		m.pollProcessed(now)
	}
	return f.next
}

// Processed returns the number before which the programs of all members of the view have
// processed everything of this member's stream, as far as PollProcessed has asked.
func (m *Member) Processed() uint64 { return m.own.flow.processing.acked }

// Unprocessed returns the children that have not acknowledged that their programs, and those
// of all members below them, have processed everything. It includes this member if its own
// program has not.
func (m *Member) Unprocessed() (ranks []protocol.Rank) {
	f := m.own.flow
	if f.processing.done < f.processing.wanted {
		ranks = append(ranks, f.root)
	}
	for _, r := range f.ackers {
		if f.processing.from[r] < f.processing.wanted {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// pollProcessed repeats the poll, unless all have answered.
func (m *Member) pollProcessed(now protocol.Time) {
	f := m.own.flow
	m.own.processedDue = protocol.Never
	m.acknowledgeProcessed(f)
	if f.processing.acked >= f.processing.wanted {
		return
	}
	m.forwardProcessedPoll(f)
	m.own.processedDue = now + m.own.processedInterval
	m.own.processedInterval = min(2*m.own.processedInterval, maxPollInterval)
	m.due = min(m.due, m.own.processedDue)
}

// forwardProcessedPoll polls the members below that have not answered. A program may take
// long, so a member that does not answer is not stalled.
func (m *Member) forwardProcessedPoll(f *flow) {
	for _, r := range f.ackers {
		if f.processing.from[r] < f.processing.wanted {
			m.queueFrame(r, f, frame{kind: poll, processed: true, first: f.processing.wanted})
		}
	}
}

// handleProcessedPoll handles a poll. The last acknowledgment may have been lost.
func (m *Member) handleProcessedPoll(f *flow, from protocol.Rank, fr *frame) {
	p := &f.processing
	p.to, p.wanted, p.acked = from, max(p.wanted, fr.first), 0
	m.acknowledgeProcessed(f)
	m.forwardProcessedPoll(f)
}

// handleProcessedAck handles an acknowledgment.
func (m *Member) handleProcessedAck(f *flow, from protocol.Rank, fr *frame) {
	p := &f.processing
	if p.from == nil {
		p.from = make(map[protocol.Rank]uint64)
	}
	p.from[from] = max(p.from[from], fr.first)
	m.acknowledgeProcessed(f)
}

// acknowledgeProcessed acknowledges what the program, and those of all members below, have
// processed.
func (m *Member) acknowledgeProcessed(f *flow) {
	p := &f.processing
	if p.acked >= p.wanted {
		return
	}
	m.markQueues(f)
	to := min(p.done, p.wanted)
	for _, r := range f.ackers {
		to = min(to, p.from[r])
	}
	if to <= p.acked {
		return
	}
	p.acked = to
	switch {
	case f != m.own.flow:
		m.queueFrame(p.to, f, frame{kind: ack, processed: true, first: to})
	case p.acked >= p.wanted:
		m.own.receipts.processed = m.own.receipts.askedProcessed
	}
}

// markQueues records what the program has processed of a flow, and marks the queues for the
// rest of what was asked for.
func (m *Member) markQueues(f *flow) {
	p := &f.processing
	for {
		if p.next > 0 {
			for id, mark := range p.marks {
				if q := m.inbox.queueOf(id); q != nil && q.processed < mark {
					return
				}
			}
			p.done, p.next, p.marks = p.next, 0, nil
			m.processing = slices.DeleteFunc(m.processing, func(o *flow) bool { return o == f })
		}
		to := min(p.wanted, f.delivered)
		if to <= p.done || f.lostBefore(to) {
			return
		}
		p.next, p.marks = to, make(map[uint64]uint64)
		m.processing = append(m.processing, f)
		if f == m.own.flow && !m.deliversOwn() {
			continue // nothing of it is for this program
		}
		p.marks[mainQueue] = m.inbox.main.lastOf(f.root)
		for id, s := range m.inbox.topics.byID {
			p.marks[id] = s.queue.lastOf(f.root)
		}
	}
}

// AwaitsProgram reports whether a root waits for the program of this member to process
// something, so that the driver calls NoteProcessed as soon as it has.
func (m *Member) AwaitsProgram() bool { return len(m.processing) > 0 }

// NoteProcessed says that the program has processed all messages of a queue up to a position
// ([Message.Position]). Queue 0 is that of Deliver, and others are named by the IDs of
// Subscribe. A driver also calls it now and then without news, so that Stuck knows.
func (m *Member) NoteProcessed(now protocol.Time, id, position uint64) {
	q := m.inbox.queueOf(id)
	if q == nil {
		return
	}
	if position > q.processed || q.processed >= q.seen {
		q.movedAt = now
	}
	q.processed, q.seen = max(q.processed, min(position, q.taken)), q.total()
	m.noteMarks(now)
}

// noteMarks acknowledges what the program has processed.
func (m *Member) noteMarks(now protocol.Time) {
	for _, f := range slices.Clone(m.processing) {
		m.acknowledgeProcessed(f)
	}
	if m.outbox.Len() > 0 {
		m.due = min(m.due, now)
	}
}

// restartProcessing starts over with the members of a new view.
func (m *Member) restartProcessing(now protocol.Time, f *flow) {
	f.processing.from = nil
	if f == m.own.flow {
		m.pollProcessed(now)
	}
}

// Stuck is a queue whose program makes no progress.
type Stuck struct {
	// Topic is that of the subscription. If empty, it is the main queue.
	Topic string
	// Since is when the program last processed a message, or had nothing to process.
	Since protocol.Time
	// Waiting counts the messages and notices that the program has not processed.
	Waiting int
}

// Stuck returns the queues in which messages have waited for so long while the program has
// processed none, in the order of their IDs. A message that the program has in its hands does
// not wait, unless a handler has it (Config.AllTopics), which keeps others from arriving.
func (m *Member) Stuck(now, bound protocol.Time) (stuck []Stuck) {
	if s, is := m.inbox.main.stuck(now, bound, m.config.AllTopics); is {
		stuck = append(stuck, s)
	}
	if len(m.inbox.topics.byID) == 0 {
		return stuck
	}
	for id := uint64(1); id <= m.inbox.topics.last; id++ {
		if t := m.inbox.topics.byID[id]; t != nil {
			if s, is := t.queue.stuck(now, bound, false); is {
				s.Topic = t.topic
				stuck = append(stuck, s)
			}
		}
	}
	return stuck
}

func (q *messageQueue) stuck(now, bound protocol.Time, handler bool) (s Stuck, is bool) {
	waiting := int(q.total() - q.processed)
	behind := waiting
	if !handler && q.taken > q.processed {
		behind--
	}
	if behind == 0 || q.processed >= q.seen || now-q.movedAt < bound {
		return s, false
	}
	return Stuck{Since: q.movedAt, Waiting: waiting}, true
}

// Known returns the position up to which this member has each stream of its view.
func (m *Member) Known() []Position {
	return m.positions(func(f *flow) uint64 { return f.next }, func(f *flow) bool {
		return f.next > 0 &&
			m.roster.includes(f.root, f.incarnation)
	})
}

// Unsent reports whether messages that were accepted have yet to be sent.
func (m *Member) Unsent() bool { return m.own.waiting.Len() > 0 }

// DeliveredUpTo returns the position up to which all of a stream was delivered to the queues. It
// reports false if something of it is lost.
func (m *Member) DeliveredUpTo(root MemberID) (position uint64, whole bool) {
	f := m.flows[root.Rank]
	if f == nil || f.incarnation != root.Incarnation {
		return 0, true
	}
	return f.delivered, f.lost == 0
}

// MarkQueues returns, of each queue, how many messages and notices have come into it.
func (m *Member) MarkQueues() map[uint64]uint64 {
	marks := map[uint64]uint64{mainQueue: m.inbox.main.total()}
	for id, s := range m.inbox.topics.byID {
		marks[id] = s.queue.total()
	}
	return marks
}

// Passed reports whether the program has processed so much of each queue.
func (m *Member) Passed(marks map[uint64]uint64) bool {
	for id, mark := range marks {
		if q := m.inbox.queueOf(id); q != nil && q.processed < mark {
			return false
		}
	}
	return true
}
