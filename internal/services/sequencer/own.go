package sequencer

// What this process has yet to see numbered: it forwards that to the leader of each view, in
// order, until it is.

// own is the messages of this process.
type own struct {
	seq       uint64 // of the last one
	pending   []body // those that are not numbered; the last one has seq
	bytes     int    // of them
	forwarded int    // how many of them the leader of the view has
	acked     uint64 // how many numbered messages this process has acknowledged
	resent    uint64 // messages forwarded again
	highest   uint64 // sequence number of the last one that was ever forwarded
}

// Forward is a frame for the leader of a view.
type Forward struct {
	To   int
	View uint64
	Body []byte
}

// Submit takes a message of this process. The caller must not change data any more.
func (m *Machine) Submit(topic string, data []byte) {
	m.seq++
	m.pending = append(m.pending, body{topic, data})
	m.bytes += bodySize(topic, data)
}

// Pending returns how many bytes of this process's messages are not numbered.
func (m *Machine) Pending() int { return m.bytes }

// Resent counts the messages that were forwarded more than once.
func (m *Machine) Resent() uint64 { return m.resent }

// Place returns the last view that a leader has begun, that leader, and how many messages are
// numbered.
func (m *Machine) Place() (view uint64, leader int, numbered uint64) {
	return m.view, m.leader, m.numbered
}

// NextForward returns the next frame for the leader, if there is one to send. If sending fails,
// the driver calls ForwardFailed.
func (m *Machine) NextForward() (f Forward, ok bool) {
	if m.leader < 0 || m.forwarded == len(m.pending) {
		return f, false
	}
	first := m.seq - uint64(len(m.pending)) + uint64(m.forwarded) + 1
	raw := appendBatch(nil, m.config.Self, first)
	for more := true; more; {
		b := &m.pending[m.forwarded]
		raw = appendBody(raw, b.topic, b.data)
		m.forwarded++
		more = m.forwarded < len(m.pending) && len(raw) < m.config.MaxBatch
	}
	last := m.seq - uint64(len(m.pending)-m.forwarded)
	m.resent += min(max(m.highest+1, first), last+1) - first
	m.highest = max(m.highest, last)
	body := (&frame{kind: kindForward, view: m.view, batches: []batch{{raw: raw}}}).encode()
	return Forward{m.leader, m.view, body}, true
}

// ForwardFailed says that the leader of a view may not have what was forwarded last.
func (m *Machine) ForwardFailed(view uint64) {
	if view == m.view {
		m.forwarded = 0
	}
}

// ownNumbered removes a message that is numbered, the first one that was not.
func (m *Machine) ownNumbered(seq uint64) {
	if len(m.pending) == 0 || seq != m.seq-uint64(len(m.pending))+1 {
		return // of an earlier machine of this process
	}
	m.bytes -= bodySize(m.pending[0].topic, m.pending[0].data)
	m.pending[0] = body{}
	m.pending = m.pending[1:]
	m.forwarded = max(m.forwarded-1, 0)
}
