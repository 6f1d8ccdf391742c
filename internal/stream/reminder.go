package stream

import "github.com/pleach-go/pleach/protocol"

// reminder tells the neighbor again, a few times after a stream has fallen quiet,
// what there is of it. Correction assumes that messages between live
// processes arrive; where connections break or queues overflow they may not, and
// the last message of a burst has no successor whose number would show a hole.
type reminder struct {
	due   protocol.Time
	left  int  // reminders left
	timed bool // the flow is among those looked at when due
}

// Reminders follow after these times, each four times the one before.
const (
	firstReminder = 40 * millisecond
	reminders     = 4
)

// remind starts the reminders of a flow over.
func (m *Member) remind(now protocol.Time, f *flow) {
	if m.lineup.size() == 1 {
		return
	}
	f.reminder.left = reminders
	if f.reminder.due == protocol.Never || f.reminder.due < now {
		f.reminder.due = now + firstReminder
	}
	m.schedule(f, f.reminder.due)
}

// remindNow tells the neighbor to the right. As everybody does, everybody is told.
func (m *Member) remindNow(now protocol.Time, f *flow) {
	r := &f.reminder
	r.left--
	r.due = protocol.Never
	if r.left > 0 {
		r.due = now + firstReminder<<(2*(reminders-r.left))
		m.schedule(f, r.due)
	}
	m.offerPast(f, 1, true, news)
}
