package member

import (
	"cmp"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A member that holds the others up for long is no longer of use to them, so it leaves. It
// decides that itself: no other member can tell a program that does nothing from one that is
// busy with the last message, or a process that is starved of CPU from one that is far away.

// defaultSlowTimeout is how long a member may hold the others up without progress.
const defaultSlowTimeout protocol.Time = 5e9

// Why a member leaves, for people.
const (
	programReceivesNothing = "the program receives nothing"
	processStarved         = "this process is starved of CPU, and others wait for it"
)

// slowProgram is what a member knows of a program that does not receive.
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
	if !m.stream.Full() || m.stream.Undelivered() == 0 || m.views == nil || s.leaving || m.config.Stream.Drop ||
		m.alone() {
		s.since = 0
		return
	}
	if received := m.stream.Stats().Delivered; s.since == 0 || received != s.received {
		s.since, s.received = now, received
		return
	}
	if now-s.since >= m.slowTimeout() {
		m.leaveSlow(now, programReceivesNothing)
	}
}

// alone reports whether this member is the only one in its view: it holds nobody up.
func (m *Machine) alone() bool {
	v := m.views.View()
	return v.Members.Len() == 1
}

// StuckQueues returns the queues in which messages wait for the program while it has processed none
// for SlowTimeout. Unless the inbox is full, that harms nobody but the program.
func (m *Machine) StuckQueues(now protocol.Time) []stream.Stuck {
	return m.stream.Stuck(now, m.slowTimeout())
}

// Slow reports whether others wait for the program, because the inbox is full.
func (m *Machine) Slow() bool { return m.slow.since > 0 }

// Received says that the program has received something that was delivered before: drivers
// take many messages at a time.
func (m *Machine) Received(now protocol.Time) {
	if m.Slow() {
		m.slow.since = now
	}
}

// slowProcess is what a member knows of itself if its process gets to run only now and then:
// its host has other things to do, or its container is throttled. Whatever it does gives
// signs of life, and all others go at its pace.
type slowProcess struct {
	since     protocol.Time // when this member began to look at itself
	intervals int           // intervals of heartbeats since then
	awaited   int           // those of them in which a root waited for this member
}

// minIntervals is for how many intervals of heartbeats at least a member looks at itself.
const minIntervals = 10

// checkProcess leaves the group if this process has been starved of CPU for SlowTimeout while
// others waited for it: at the end of most intervals of heartbeats it did not run, and in
// half of them or more a root waited for something that it lacked. Where all members are starved,
// none is at fault. So one that leaves has heard a neighbor as often as one that runs
// well beats.
func (m *Machine) checkProcess(now protocol.Time) {
	s := &m.starved
	if m.heart == nil || m.slow.leaving || m.heart.Intervals() == s.intervals {
		return
	}
	s.intervals = m.heart.Intervals()
	if m.stream.TakeAwaited() {
		s.awaited++
	}
	elapsed := now - s.since
	if elapsed < max(m.slowTimeout(), minIntervals*m.config.Heartbeat.Interval) {
		return
	}
	if hardlyRuns(m.heart.TakeHealth(), s.awaited, elapsed, m.config.Heartbeat.Interval) && s.since > 0 {
		m.leaveSlow(now, processStarved)
	}
	*s = slowProcess{since: now}
}

// hardlyRuns judges the intervals of some time, in so many of which a root has waited.
func hardlyRuns(h heartbeat.Health, awaited int, elapsed, interval protocol.Time) bool {
	late, well := 4*h.Late >= 3*h.Intervals, 5*protocol.Time(h.Beats)*interval >= 4*elapsed
	return late && well && 2*awaited >= h.Intervals
}

func (m *Machine) slowTimeout() protocol.Time {
	return cmp.Or(m.config.SlowTimeout, defaultSlowTimeout)
}

// leaveSlow leaves because this member holds the others up.
func (m *Machine) leaveSlow(now protocol.Time, why string) {
	m.slow.leaving = true
	if m.config.OnSlow != nil {
		m.config.OnSlow(m.slowTimeout(), why)
	}
	m.Leave(now)
}

// TooSlow reports whether this member leaves, or has left, because it holds the others up.
func (m *Machine) TooSlow() bool { return m.slow.leaving }
