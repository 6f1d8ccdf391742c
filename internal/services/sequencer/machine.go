package sequencer

import (
	"slices"
)

// Member is one start of a process in a group.
type Member struct {
	Rank        int
	Incarnation uint64
}

// Message is a message in its place.
type Message struct {
	Origin Member
	Number uint64 // of the messages before it and itself
	Topic  string
	Data   []byte // must not be changed
}

// Config configures a Machine.
type Config struct {
	// Self is this process.
	Self Member
	// Safe delivers only what a majority of the view has. All members use the same.
	Safe bool
	// MaxBatch is how many bytes of messages go into one frame, and one message more.
	MaxBatch int
	// Block is how many bytes of a snapshot this member asks for at a time. If zero, 64 KiB.
	Block int
}

// Machine is one member's part in the order.
type Machine struct {
	config Config
	order
	own
	lead
}

// order is what follows from the broadcasts that a member has received. It is the same at all
// members where a view begins.
type order struct {
	view     uint64            // the last view that its leader has begun
	leader   int               // of that view; -1: not known
	numbered uint64            // messages that have a number
	waiting  []Message         // numbered, and not delivered: the last ones, of Safe only
	last     map[Member]uint64 // sequence number of the last numbered message of each origin
}

// New returns the machine of a process that has received no broadcast yet.
func New(c Config) *Machine {
	return &Machine{config: c, order: order{leader: -1, last: make(map[Member]uint64)}}
}

// Receive takes a broadcast of the group, which was sent in a view. It returns the messages that
// are delivered by it, in their order.
func (m *Machine) Receive(view uint64, from int, body []byte) ([]Message, error) {
	f, err := decode(body)
	switch {
	case err != nil:
		return nil, err
	case f.view != view: // its sender has led until it was sent
		return nil, nil
	case f.kind == kindBegin && view > m.view:
		return m.begin(view, from, f.members), nil
	case f.kind == kindNumber && view == m.view && from == m.leader:
		for i := range f.batches {
			m.number(&f.batches[i])
		}
		return m.deliver(f.count), nil
	}
	return nil, nil
}

// Lost says that broadcasts of a member are missing, as at the end of a membership: what the leader
// has sent behind them has no place that this process knows, until another view begins.
func (m *Machine) Lost(view uint64, from int) {
	if view == m.view && from == m.leader {
		m.leader = -1
	}
}

// begin begins a view. All its members have received the same broadcasts of the views before:
// what they have numbered is safe.
func (m *Machine) begin(view uint64, leader int, members []Member) []Message {
	m.view, m.leader = view, leader
	for origin := range m.last {
		if !slices.Contains(members, origin) {
			delete(m.last, origin) // a leader numbers nothing of it any more
		}
	}
	m.forwarded = 0
	return m.deliver(m.numbered)
}

// number gives the messages of a batch their places. Those that have one already, or follow a
// message that has none, come from an earlier attempt of their origin.
func (m *Machine) number(b *batch) {
	for i, body := range b.bodies {
		seq := b.first + uint64(i)
		if seq != m.last[b.origin]+1 {
			continue
		}
		m.last[b.origin] = seq
		m.numbered++
		m.waiting = append(m.waiting, Message{b.origin, m.numbered, body.topic, body.data})
		if b.origin == m.config.Self {
			m.ownNumbered(seq)
		}
	}
}

// deliver returns the messages that wait and may be delivered: those that are committed or,
// without Safe, all.
func (m *Machine) deliver(committed uint64) []Message {
	if !m.config.Safe {
		committed = m.numbered
	}
	n := 0
	for n < len(m.waiting) && m.waiting[n].Number <= committed {
		n++
	}
	delivered := m.waiting[:n:n]
	m.waiting = m.waiting[n:]
	if len(m.waiting) == 0 {
		m.waiting = nil
	}
	return delivered
}

// NextAck returns the next acknowledgment for the leader, if there is one to send.
func (m *Machine) NextAck() (to int, body []byte, ok bool) {
	if !m.config.Safe || m.leader < 0 || m.leader == m.config.Self.Rank || m.acked >= m.numbered {
		return 0, nil, false
	}
	m.acked = m.numbered
	return m.leader, (&frame{kind: kindAck, view: m.view, count: m.numbered}).encode(), true
}

// AckFailed says that the leader may not have the last acknowledgment.
func (m *Machine) AckFailed() { m.acked = 0 }
