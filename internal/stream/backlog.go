package stream

import "github.com/pleach-go/pleach/protocol"

// backlog is what waits for a child whose queue is full. Meanwhile this member
// takes in no more (see [Member.ThrottledUntil]), so that pressure goes up the tree to
// the root, and to the program that broadcasts too much. A child that stays full
// for longer than patience is given up on until it has room again: then it asks
// for what it has missed. So a slow member slows the others down, and a stopped
// one does so once, for a moment.
type backlog struct {
	since   protocol.Time
	sends   []send
	bytes   int
	expired bool // patience is
}

// patience is how long a child whose queue is full is waited for, or a program
// whose inbox is. It is long enough for a member on a machine that has other things
// to do.
const stallTimeout = 1000 * millisecond

// stall begins a backlog with the segment that had no room, or adds it.
func (m *Member) startBacklog(now protocol.Time, s send) {
	b := m.backlogs[s.to]
	if b == nil {
		b = &backlog{since: now}
		m.backlogs[s.to] = b
		m.due = min(m.due, now+stallTimeout)
	}
	b.add(s, m.config.KeepBytes)
}

// add adds a segment, unless patience is over or there are too many.
func (b *backlog) add(s send, limit int) {
	if b.bytes += len(s.encoded) + len(s.body) + segmentCost; b.bytes > limit {
		b.giveUp()
	}
	if !b.expired {
		b.sends = append(b.sends, s)
	}
}

func (b *backlog) giveUp() { b.expired, b.sends, b.bytes = true, nil, 0 }

// stalled reports whether a segment has to wait in a backlog, and puts it there.
func (m *Member) joinBacklog(s send) bool {
	if len(m.backlogs) == 0 || s.kind != data {
		return false
	}
	b := m.backlogs[s.to]
	if b == nil {
		return false
	}
	b.add(s, m.config.KeepBytes)
	return true
}

// resume sends what has waited for a peer.
func (m *Member) resumeBacklog(peer protocol.Rank) {
	b := m.backlogs[peer]
	if b == nil {
		return
	}
	delete(m.backlogs, peer)
	for _, s := range b.sends {
		m.outbox.Push(s)
	}
}

// expire gives up on those who have been full for too long.
func (m *Member) expireBacklogs(now protocol.Time) {
	for _, b := range m.backlogs {
		switch {
		case b.expired:
		case now >= b.since+stallTimeout:
			b.giveUp()
		default:
			m.due = min(m.due, b.since+stallTimeout)
		}
	}
}
