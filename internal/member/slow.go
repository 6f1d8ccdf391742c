package member

import (
	"cmp"

	"github.com/pleach-go/pleach/protocol"
)

// defaultSlowTimeout is how long a program may receive nothing while others wait for it.
const defaultSlowTimeout protocol.Time = 5e9

// slowProgram is what a member knows of a program that does not receive. A member that
// blocks the others for long is no longer of use to them, so it leaves. It decides that
// itself: no other member can tell a program that does nothing from one that is busy
// with the last message.
type slowProgram struct {
	since    protocol.Time // when it last received something although more waited for it; 0: it is not slow
	received uint64        // messages, then
	leaving  bool
}

// checkProgram leaves the group if the program has received nothing for SlowTimeout
// although its inbox is full. While the inbox is full, the senders' polls make sure that
// it is called often enough. Messages that a view change holds back fill the inbox, too, but
// the program cannot receive them.
func (m *Machine) checkProgram(now protocol.Time) {
	s := &m.slow
	if !m.stream.Full() || m.stream.Undelivered() == 0 || m.views == nil || s.leaving || m.config.Stream.Drop {
		s.since = 0
		return
	}
	if received := m.stream.Stats().Delivered; s.since == 0 || received != s.received {
		s.since, s.received = now, received
		return
	}
	if timeout := cmp.Or(m.config.SlowTimeout, defaultSlowTimeout); now-s.since >= timeout {
		s.leaving = true
		if m.config.OnSlow != nil {
			m.config.OnSlow(timeout)
		}
		m.Leave(now)
	}
}

// TooSlow reports whether this member leaves, or has left, because its program receives
// too slowly.
func (m *Machine) TooSlow() bool { return m.slow.leaving }
