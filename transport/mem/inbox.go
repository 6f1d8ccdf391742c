package mem

import "github.com/pleach-go/pleach/protocol"

// An event is one call of a member's handler. All kinds go through one inbox, so the
// calls about a peer are in the order of the events.
type event struct {
	kind        kind
	peer        protocol.Rank
	frame       []byte
	link        *link // of the frame
	incarnation uint64
	cause       error
}

type kind int

const (
	received kind = iota
	up
	down
	writable
)

// cost is what a frame counts in a queue: its bytes and a fixed overhead.
func cost(frame []byte) int { return len(frame) + 64 }

// post puts an event into the inbox.
func (m *member) post(e event) {
	if m.ended == nil {
		m.inbox = append(m.inbox, e)
		m.arrived.Signal()
	}
}

// run delivers the events of the inbox until the member ends.
func (m *member) run() {
	var batch []event
	for m.take(&batch) {
		for i := range batch {
			m.deliver(&batch[i])
			if !m.release(&batch[i]) {
				return
			}
			batch[i] = event{} // Let go of the frame.
		}
	}
}

// take waits until the inbox is not empty, and swaps it for the batch, whose memory
// becomes the next inbox. It reports whether the member still runs.
func (m *member) take(batch *[]event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.inbox) == 0 && m.ended == nil {
		m.arrived.Wait()
	}
	*batch, m.inbox = m.inbox, (*batch)[:0]
	return m.ended == nil
}

func (m *member) deliver(e *event) {
	switch e.kind {
	case received:
		m.handler.Receive(e.peer, e.frame)
	case up:
		m.handler.Up(e.peer, e.incarnation)
	case down:
		m.handler.Down(e.peer, e.cause)
	case writable:
		m.handler.Writable(e.peer)
	}
}

// release removes a delivered frame from the sender's queue, and reports whether the
// member still runs. A frame counts until the handler has returned.
func (m *member) release(e *event) bool {
	m.mu.Lock()
	running, writable := m.ended == nil, false
	if l := e.link; l != nil {
		l.queued -= cost(e.frame)
		// At half, so that Writable is not called for each single frame.
		writable = l.full && l.queued <= m.net.queueBytes/2
		if writable {
			l.full = false
		}
	}
	m.mu.Unlock()
	if writable {
		e.link.from.resume(e.link)
	}
	return running
}

// resume tells a member that a queue of its own, which was full, has space again.
func (m *member) resume(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.links[l.to.rank] == l {
		m.post(event{kind: writable, peer: l.to.rank})
	}
}
