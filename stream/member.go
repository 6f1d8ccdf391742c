package stream

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// Member is one process's part in all streams of a group. See the package
// comment for how to drive it.
type Member struct {
	config   Config
	view     uint64 // its number
	lineup   lineup
	mend     *broadcast.Plan // correction, with the delay as last measured
	delay    delay
	flows    map[protocol.Rank]*flow
	recent   *flow         // that a frame was about last
	former   []*flow       // that have ended with the present view
	timed    []*flow       // those that may have something to do later
	due      protocol.Time // when the first of them has
	outbox   deque[send]
	own      ownStream
	frozen   bool   // the next view is being agreed upon; see view.go
	held     int    // bytes that are not delivered for that
	cut      []Mark // of the view that is about to end
	inbox    inbox
	backlogs map[protocol.Rank]*backlog // of those whose queues are full
	laggards []laggard                  // who are waited for; see pressure.go
	down     map[protocol.Rank]bool     // peers that could not be reached when last tried
	// retryDue is when to try the nearest of them again.
	retryDue protocol.Time
	last     send // what was handed out last
	buffer   []byte
	frames   slab
	places   map[protocol.Rank]*room // where peers' long frames are being read to; see room.go
	stats    Stats
}

// Message is what the program gets: a message, or a notice that some are lost.
type Message struct {
	// Root is who sent it. Data is shared with the member, which may still pass
	// it on: it must not be changed.
	Root protocol.Rank
	Data []byte
	// View is the number of the view it was sent in.
	View uint64
	// Lost, if not 0, makes this a notice without Data: so many segments of the
	// root, behind what was delivered of it before, cannot be had any more. This
	// member was cut off for longer than others keep them.
	Lost uint64
}

// Stats counts what a member has done.
type Stats struct {
	Broadcast, Delivered             uint64 // messages
	Relayed, Fostered, Repaired      uint64 // segments sent along the tree, to orphans, and to those who asked
	Offers, Requests                 uint64 // sent
	Duplicates, Early, Lost, Refused uint64 // segments received twice, by correction first, given up, not taken for want of room
	Delay                            protocol.Time
}

// send is one frame to be sent: that of a segment, shared by all it is sent to, as
// it is but for its kind; or another, encoded for this.
type send struct {
	to        protocol.Rank
	flow      *flow
	kind      kind
	rightward bool // an offer that asks for an answer
	probe     bool // an offer to one who is likely down: it need not go further
	encoded   []byte
	body      []byte // what is behind, if it is elsewhere
}

// New makes a member.
func New(c Config) (*Member, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Member{
		config:   c,
		view:     c.View,
		flows:    make(map[protocol.Rank]*flow),
		backlogs: make(map[protocol.Rank]*backlog),
		down:     make(map[protocol.Rank]bool),
		places:   make(map[protocol.Rank]*room),
		due:      protocol.Never,
		delay:    delay{now: firstDelay},
	}
	if err := m.lineUp(c.Size, c.Members); err != nil {
		return nil, err
	}
	m.own.pollDue, m.retryDue = protocol.Never, protocol.Never
	own, err := m.open(c.Rank, c.Incarnation)
	if err != nil {
		return nil, err
	}
	m.own.flow, m.recent = own, own
	for _, mark := range c.Start {
		f, err := m.open(mark.Rank, mark.Incarnation)
		if err != nil {
			return nil, err
		}
		f.next, f.wanted, f.base, f.delivered, f.store.low = mark.Next, mark.Next, mark.Next, mark.Next, mark.Next
	}
	return m, nil
}

// open begins to follow a root's stream.
func (m *Member) open(root protocol.Rank, incarnation uint64) (*flow, error) {
	f := &flow{root: root, incarnation: incarnation, ahead: make(map[uint64]segment)}
	if err := m.route(f); err != nil {
		return nil, err
	}
	f.correction.due, f.asking.due, f.reminder.due = protocol.Never, protocol.Never, protocol.Never
	m.flows[root] = f
	return f, nil
}

// follow returns the flow a frame is about, or nil if its root is not in the view,
// or not by that incarnation. Where any is good, a new one begins anew. A flow
// that has ended is returned only to those who ask for something of it.
func (m *Member) follow(fr *frame) *flow {
	f := m.recent
	if f.root != fr.root {
		f = m.flows[fr.root]
	}
	switch {
	case f != nil && f.incarnation == fr.incarnation:
		m.recent = f
		return f
	case !m.lineup.admits(fr.root, fr.incarnation):
		return m.ended(fr)
	case f != nil && f.incarnation > fr.incarnation, fr.root == m.config.Rank:
		return nil
	case f != nil:
		m.timed = slices.DeleteFunc(m.timed, func(t *flow) bool { return t == f })
	}
	f, err := m.open(fr.root, fr.incarnation)
	if err != nil {
		return nil // cannot be: the same tree was made at the start
	}
	m.recent = f
	return f
}

// ended returns the flow that a request is about, if it has ended with this view.
func (m *Member) ended(fr *frame) *flow {
	if fr.kind == request {
		for _, f := range m.former {
			if f.root == fr.root && f.incarnation == fr.incarnation {
				return f
			}
		}
	}
	return nil
}

// Receive takes a frame from a peer. The bytes are only lent. An error says that
// the frame made no sense; it is not taken then.
func (m *Member) Receive(now protocol.Time, from protocol.Rank, b []byte) error {
	fr, err := parse(b)
	if err != nil {
		return fmt.Errorf("from rank %d: %w", from, err)
	}
	m.receive(now, from, &fr)
	return nil
}

func (m *Member) receive(now protocol.Time, from protocol.Rank, fr *frame) {
	f := m.follow(fr)
	if f == nil {
		return
	}
	switch fr.kind {
	case data:
		m.take(now, f, from, fr.first, fr, byTree)
	case repair:
		m.take(now, f, from, fr.first, fr, byRequest)
		m.askOn(now, f)
	case offer:
		m.hearOffer(now, f, from, fr)
	case request:
		m.answer(now, f, from, fr)
	case gone:
		m.hearGone(now, f, from, fr)
	case adopt:
		f.adopt(from)
	case poll:
		m.hearPoll(f, from, fr)
	case ack:
		m.hearAck(f, from, fr)
	}
}

// route is the way a segment has come.
type route uint8

const (
	byTree    route = iota // from the parent, or a foster parent
	byOffer                // with a correction message
	byRequest              // because it was asked for
)

// take takes a segment. One that comes along the tree, or by correction before
// the tree, is passed on to the children; one that was asked for is not: the tree
// may bring it still, and else they have ring neighbors of their own to ask.
func (m *Member) take(now protocol.Time, f *flow, from protocol.Rank, number uint64, fr *frame, how route) {
	tree, pass := how == byTree, how != byRequest
	if f.has(number) {
		m.again(f, from, number, tree)
		return
	}
	seg := m.segmentOf(f, fr, number)
	m.notice(f, from, number, tree)
	if pass {
		m.pass(f, number, &seg)
	}
	f.wanted = max(f.wanted, number+1)
	if number >= f.cut && m.inboxFull() || number != f.next && f.aheadBytes > m.config.KeepBytes {
		m.stats.Refused++
		m.ask(now, f, from)
		return
	}
	if number == f.next {
		if tree {
			f.fedAt = now
		}
		m.accept(f, &seg)
	} else {
		f.ahead[number] = seg
		f.aheadBytes += seg.size()
	}
	m.advance(f)
	m.inbox.weigh(now, m.config.InboxBytes)
	if f.next > number {
		m.correct(now, f)
		m.remind(now, f)
		m.acknowledge(f)
	}
	if f.next < f.wanted {
		m.ask(now, f, from)
	}
}

// again takes a segment that is here already.
func (m *Member) again(f *flow, from protocol.Rank, number uint64, tree bool) {
	m.stats.Duplicates++
	if !tree || from != f.parent {
		return
	}
	f.foster.orphaned = 0 // the tree feeds us, only later than others did
	if seg, ok := f.get(number); ok && number >= f.passed {
		m.pass(f, number, &seg) // it was asked for, too early
	}
}

// advance moves on over what is here without a hole.
func (m *Member) advance(f *flow) {
	for len(f.ahead) > 0 {
		seg, ok := f.ahead[f.next]
		if !ok {
			return
		}
		delete(f.ahead, f.next)
		f.aheadBytes -= seg.size()
		m.accept(f, &seg)
	}
}

// accept takes the segment whose turn it is.
func (m *Member) accept(f *flow, seg *segment) {
	m.keep(f, seg)
	if m.frozen {
		m.held += seg.size()
		return
	}
	m.deliver(f, f.next)
}

// deliver hands the program what is here of a flow up to a number, and tells it of
// what was given up.
func (m *Member) deliver(f *flow, upTo uint64) {
	for f.delivered < upTo {
		if kept := min(f.store.kept(f.delivered), upTo); kept > f.delivered {
			m.inbox.lose(f.root, m.view, kept-f.delivered)
			f.partial, f.delivered = partial{skipped: true}, kept
			continue
		}
		seg, ok := f.store.get(f.delivered)
		if f.delivered++; !ok {
			continue // cannot be: all before next is kept or given up
		}
		switch {
		case f == m.own.flow:
		case seg.batch:
			f.partial = partial{}
			_ = split(seg.payload(), func(message []byte) { m.handOver(f, message) })
		default:
			if message, complete := f.partial.add(&seg, m.config.MaxMessage); complete {
				m.handOver(f, message)
			}
		}
	}
}

// handOver puts a message where the program takes it.
func (m *Member) handOver(f *flow, message []byte) {
	if len(message) <= m.config.MaxMessage {
		m.inbox.add(Message{Root: f.root, Data: message, View: m.view})
	}
}

// keep stores the next segment.
func (m *Member) keep(f *flow, seg *segment) {
	f.store.add(seg, m.config.KeepBytes, f.delivered)
	f.next++
}

// pass sends a segment to the children of this member in the root's tree.
func (m *Member) pass(f *flow, number uint64, seg *segment) {
	f.passed = max(f.passed, number+1)
	for _, child := range f.children {
		m.stats.Relayed++
		m.putSegment(child, f, data, seg)
	}
	m.feed(f, number, seg)
}

// put queues a frame about a flow.
func (m *Member) put(to protocol.Rank, f *flow, fr frame) {
	fr.root, fr.incarnation = f.root, f.incarnation
	m.outbox.push(send{
		to: to, flow: f, kind: fr.kind, rightward: fr.way == rightward,
		encoded: fr.append(m.frames.get(requestSize + len(fr.segment))),
	})
}

// putSegment queues a segment.
func (m *Member) putSegment(to protocol.Rank, f *flow, k kind, seg *segment) {
	m.outbox.push(send{to: to, flow: f, kind: k, encoded: seg.frame, body: seg.body})
}

// Next returns the next frame to send, a head and a body behind it, valid until the
// next call, or false when there is none for now.
func (m *Member) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	m.tick(now)
	for {
		if m.outbox.len() == 0 {
			m.emit(now)
		}
		if m.outbox.len() == 0 {
			return protocol.NoRank, nil, nil, false
		}
		if m.last = m.outbox.pop(); !m.stalled(m.last) {
			break
		}
	}
	if m.last.kind != repair {
		return m.last.to, m.last.encoded, m.last.body, true
	}
	m.buffer = append(m.buffer[:0], m.last.encoded...)
	m.buffer[0] = byte(repair)
	return m.last.to, m.buffer, m.last.body, true
}

// Deliver returns the next message or notice for the program, or false when there is none.
func (m *Member) Deliver(now protocol.Time) (Message, bool) {
	message, ok := m.inbox.take()
	if !ok {
		return Message{}, false
	}
	if message.Lost == 0 {
		m.stats.Delivered++
	}
	m.inbox.weigh(now, m.config.InboxBytes)
	if m.inbox.refusing && m.inbox.bytes+m.held <= m.config.InboxBytes {
		m.inbox.refusing = false
		for _, f := range m.timed {
			if f.next < f.wanted && f.asking.due == protocol.Never {
				f.asking.due = now // what had no room has now
				m.schedule(f, now)
			}
		}
	}
	return message, true
}

// inboxFull reports whether what arrives has to be refused, and notes it, so that
// Deliver asks for it again.
func (m *Member) inboxFull() bool {
	if m.inbox.bytes+m.held <= m.config.InboxBytes {
		return false
	}
	m.inbox.refusing = true
	return true
}

// Pending is how many messages and notices wait to be delivered.
func (m *Member) Pending() int { return m.inbox.messages.len() }

// Stats returns what the member has counted.
func (m *Member) Stats() Stats {
	m.stats.Delay = m.delay.now
	return m.stats
}
