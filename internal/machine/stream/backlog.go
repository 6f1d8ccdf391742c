package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// backlog holds the segments for a child whose queue is full. Flow control bounds it. A
// backlog expires if the queue stays full for stallTimeout: the child gets nothing more
// until its queue has room, the tree bypasses it (route.go), and it pulls the
// segments that it has missed.
type backlog struct {
	since   protocol.Time
	sends   []send
	bytes   int
	expired bool // segments are dropped until the queue has room
}

// stallTimeout is how long a child's queue may stay full, or a poll unanswered, before
// the tree bypasses the child. It is long enough for a process on a busy
// machine to be scheduled.
const stallTimeout = 1000 * millisecond

// startBacklog adds a segment that the peer's queue refused, and begins the backlog if
// there is none.
func (m *Member) startBacklog(now protocol.Time, s send) {
	b := m.backlogs[s.to]
	if b == nil {
		b = &backlog{since: now}
		m.backlogs[s.to] = b
		m.due = min(m.due, now+stallTimeout)
	}
	m.addToBacklog(b, s)
}

// addToBacklog appends a segment, unless the backlog has expired. Beyond KeepBytes it
// expires at once.
func (m *Member) addToBacklog(b *backlog, s send) {
	b.sends = append(b.sends, s)
	b.bytes += len(s.encoded) + len(s.body) + segmentCost
	if b.expired || b.bytes > m.config.KeepBytes {
		m.giveUpBacklog(b)
	}
}

// giveUpBacklog drops the segments of a backlog that expires or has expired.
func (m *Member) giveUpBacklog(b *backlog) {
	for _, s := range b.sends {
		m.noteMissed(s.to, s.flow)
	}
	b.sends, b.bytes = nil, 0
	if !b.expired {
		b.expired = true
		m.reroute()
	}
}

// joinBacklog appends a segment to the peer's backlog. It reports false if there is
// none.
func (m *Member) joinBacklog(s send) bool {
	if len(m.backlogs) == 0 || s.kind != data {
		return false
	}
	b := m.backlogs[s.to]
	if b == nil {
		return false
	}
	m.addToBacklog(b, s)
	return true
}

// hasBacklog reports whether segments of a flow wait for room in the peer's queue.
func (m *Member) hasBacklog(peer protocol.Rank, f *flow) bool {
	b := m.backlogs[peer]
	return b != nil && slices.ContainsFunc(b.sends, func(s send) bool { return s.flow == f })
}

// resumeBacklog ends a peer's backlog and sends what is in it.
func (m *Member) resumeBacklog(peer protocol.Rank) {
	b := m.backlogs[peer]
	if b == nil {
		return
	}
	delete(m.backlogs, peer)
	if b.expired {
		m.reroute()
	}
	for _, s := range b.sends {
		m.outbox.Push(s)
	}
}

// expireBacklogs expires the backlogs of peers whose queues have been full for too
// long.
func (m *Member) expireBacklogs(now protocol.Time) {
	for _, b := range m.backlogs {
		switch {
		case b.expired:
		case now >= b.since+stallTimeout:
			m.giveUpBacklog(b)
		default:
			m.due = min(m.due, b.since+stallTimeout)
		}
	}
}
