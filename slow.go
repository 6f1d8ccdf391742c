package pleach

import (
	"cmp"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// defaultSlowTimeout is how long a program may receive nothing while others wait for it.
const defaultSlowTimeout = 5 * time.Second

// slowProgram is what a member knows of a program that does not receive. A member that
// blocks the others for long is no longer of use to them, so it leaves. It decides that
// itself: no other member can tell a program that does nothing from one that is busy
// with the last message.
type slowProgram struct {
	since    protocol.Time // when its inbox was full and it last received something; 0: it is not
	received uint64        // messages, then
	leaving  bool
}

// checkProgram leaves the group if the program has received nothing for SlowTimeout
// although its inbox is full. It is called within node.Do. While the inbox is full, the
// senders' polls make sure that it is called often enough.
func (g *Group) checkProgram(now protocol.Time) {
	s := &g.slow
	if !g.member.Full() || g.stack.views == nil || s.leaving || g.config.Limits.Overflow == Drop {
		s.since = 0
		return
	}
	if received := g.member.Stats().Delivered; s.since == 0 || received != s.received {
		s.since, s.received = now, received
		return
	}
	if timeout := cmp.Or(g.config.Limits.SlowTimeout, defaultSlowTimeout); now-s.since >= protocol.Time(timeout) {
		s.leaving = true
		g.log.Warn("leaving: the program receives nothing", "for", timeout)
		g.stack.now, g.stack.changed = now, true
		g.stack.views.Leave(now)
	}
}
