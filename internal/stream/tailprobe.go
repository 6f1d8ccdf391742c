package stream

import "github.com/pleach-go/pleach/protocol"

// reminder tells the neighbor again, a few times after a stream has fallen quiet,
// what there is of it. Correction assumes that messages between live
// processes arrive; where connections break or queues overflow they may not, and
// the last message of a burst has no successor whose number would show a hole.
type tailProbe struct {
	due       protocol.Time
	remaining int // reminders left
}

// Reminders follow after these times, each four times the one before.
const (
	tailProbeInterval = 40 * millisecond
	tailProbes        = 4
)

// remind starts the reminders of a flow over.
func (m *Member) armTailProbe(now protocol.Time, f *flow) {
	if m.roster.size() == 1 {
		return
	}
	f.tailProbe.remaining = tailProbes
	if f.tailProbe.due == protocol.Never || f.tailProbe.due < now {
		f.tailProbe.due = now + tailProbeInterval
	}
	m.schedule(f, f.tailProbe.due)
}

// remindNow tells the neighbor to the right. As everybody does, everybody is told.
func (m *Member) sendTailProbe(now protocol.Time, f *flow) {
	p := &f.tailProbe
	p.remaining--
	p.due = protocol.Never
	if p.remaining > 0 {
		p.due = now + tailProbeInterval<<(2*(tailProbes-p.remaining))
		m.schedule(f, p.due)
	}
	m.offerPast(f, 1, true, undirected)
}
