package stream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// ownStream is what this member sends as a root and has not sent yet.
type ownStream struct {
	flow    *flow
	waiting []segment
	bytes   int
	within  bool // a message is being written
	open    int  // bytes of it
}

// ErrBusy says that too much is waiting to be sent.
var ErrBusy = errors.New("stream: outbox full")

// MaxMessage is the longest message that can be written.
func (m *Member) MaxMessage() int { return m.config.MaxMessage }

// SegmentSize is the longest segment Write takes.
func (m *Member) SegmentSize() int { return m.config.SegmentSize }

// Write takes one segment of a message to broadcast; more says that the message
// goes on. [ErrBusy] says to try again when Next has sent something. The bytes are
// the caller's again when it returns.
func (m *Member) Write(payload []byte, more bool) error {
	switch {
	case len(payload) > m.config.SegmentSize:
		return fmt.Errorf("stream: a segment of %d bytes: %d at most", len(payload), m.config.SegmentSize)
	case m.own.open+len(payload) > m.config.MaxMessage:
		return fmt.Errorf("stream: a message of more than %d bytes", m.config.MaxMessage)
	case m.own.bytes > 0 && m.own.bytes+len(payload) > m.config.OutboxBytes:
		return ErrBusy
	}
	seg := segment{!m.own.within, more, slices.Clone(payload)}
	m.own.within = more
	m.own.waiting = append(m.own.waiting, seg)
	m.own.bytes += seg.size()
	m.own.open += len(payload)
	if !more {
		m.own.open = 0
		m.stats.Broadcast++
	}
	return nil
}

// Abandon ends a message that is only partly written: nobody will get it.
func (m *Member) Abandon() { m.own.within, m.own.open = false, 0 }

// Unwritten is how many segments taken by Write have not been sent yet.
func (m *Member) Unwritten() int { return len(m.own.waiting) }

// emit sends the next segment of this member's own stream, unless a child has
// no room for it.
func (m *Member) emit(now protocol.Time) {
	if len(m.own.waiting) == 0 || m.held(now) {
		return
	}
	seg, f := m.own.waiting[0], m.own.flow
	m.own.waiting[0] = segment{}
	m.own.waiting = m.own.waiting[1:]
	m.own.bytes -= seg.size()
	m.pass(now, f, f.next, seg)
	m.keep(f, seg)
	f.wanted = f.next
	m.correct(now, f)
	m.remind(now, f)
}

// held reports whether a child's full queue holds up this member's own sends:
// pressure reaches the program that broadcasts too much. A child that stays full
// is waited for once; until it has room again it is left to ask for what it
// missed.
func (m *Member) held(now protocol.Time) bool {
	held := false
	for _, since := range m.full {
		if until := since + patience; now < until {
			held = true
			m.due = min(m.due, until)
		}
	}
	return held
}

// Unsent says that the frame Next returned last could not be sent: the peer's
// queue is full, or it is down.
func (m *Member) Unsent(now protocol.Time, full bool) {
	to := m.last.to
	if full {
		_, known := m.full[to]
		if child := m.last.flow == m.own.flow && m.last.frame.kind == data; child && !known {
			m.full[to] = now
		}
		return
	}
	if m.last.frame.kind == offer {
		m.offerFurther(now, to, m.last.flow)
	}
}

// Room says that a peer whose queue was full has room again. It may have missed
// something, so it is told what there is.
func (m *Member) Room(_ protocol.Time, peer protocol.Rank) {
	delete(m.full, peer)
	m.offerAll(peer)
}

// Up says that there is a connection to a peer. What was sent to it before may
// have been lost, so it is told what there is.
func (m *Member) Up(_ protocol.Time, peer protocol.Rank) {
	delete(m.full, peer)
	m.offerAll(peer)
}

// offerAll tells a peer of all streams, in order of root.
func (m *Member) offerAll(peer protocol.Rank) {
	roots := make([]protocol.Rank, 0, len(m.flows))
	for root, f := range m.flows {
		if f.next > 0 {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	for _, root := range roots {
		m.offer(peer, m.flows[root], false)
	}
}
