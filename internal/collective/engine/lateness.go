package engine

import (
	"slices"
	"time"
)

// A corrected call waits for messages of processes that may be dead without anybody knowing
// it, or stopped. A process whose message is late is asked for its progress. It answers
// even while its program is busy. One that does not answer is unresponsive. How long an answer may
// take follows the time that others took (their mean plus four deviations: Jacobson 1988).
// Later calls do not wait for a silent process until it sends again. A wrong guess costs an
// input.

// Awaited is a message that a corrected call waits for.
type Awaited struct {
	From, Step int
	Body       []byte
	Here       bool // Body has arrived
	Gone       bool // the sender is known to be dead
	Silent     bool // a call has waited for the sender in vain, and it has made no call since

	before   uint64 // progress reports that had come from the sender before it was asked
	answered bool   // more have come since
}

// Settled reports whether the message is here, or will never be.
func (a *Awaited) Settled() bool { return a.Here || a.Gone }

// allInTime reports whether nothing is left to wait for.
func allInTime(messages []Awaited) bool {
	return !slices.ContainsFunc(messages, func(m Awaited) bool { return !m.Settled() && !m.Silent })
}

// allAnswered reports whether all that are waited for have shown that they live.
func allAnswered(messages []Awaited) bool {
	return !slices.ContainsFunc(messages, func(m Awaited) bool { return !m.Settled() && !m.Silent && !m.answered })
}

// waitSlices is into how many slices a wait is divided. However late its timer is, a slice
// counts once, so that a process that was itself stopped reads what has arrived meanwhile
// before it gives up on the others.
const waitSlices = 4

// ReceiveUntil waits until enough, which reads messages, returns true, or the timeout is over.
func (t *Task) ReceiveUntil(messages []Awaited, enough func() bool, timeout time.Duration) error {
	e, o := t.engine, t.call
	var timer *time.Timer // most waits end before one is needed
	e.mu.Lock()
	defer e.mu.Unlock()
	for left := waitSlices; o.err == nil; {
		t.lookFor(messages)
		if enough() || left == 0 || t.ctx.Err() != nil {
			t.stopWaiting(messages)
			return t.ctx.Err()
		}
		changed := o.changed.Wait()
		if timer == nil {
			timer = time.NewTimer(timeout / waitSlices)
			defer timer.Stop()
		}
		e.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			left--
			timer.Reset(timeout / waitSlices)
		case <-t.ctx.Done():
		}
		e.mu.Lock()
	}
	return o.err
}

// ReceiveInTime waits for messages of processes that are not silent. Levels is how many
// processes, one after the other, may have waited before they send.
func (t *Task) ReceiveInTime(messages []Awaited, levels int) error {
	began, limit := t.beginWait()
	inTime := func() bool { return allInTime(messages) }
	err := t.ReceiveUntil(messages, inTime, limit/waitSlices)
	if inTime() {
		t.noteAnswers(messages, began)
		return err
	}
	for pause := limit; err == nil && !inTime(); pause *= 2 {
		asked := t.askLate(messages)
		if err = t.ReceiveUntil(messages, func() bool { return allAnswered(messages) }, limit); err != nil {
			return err
		}
		t.noteAnswers(messages, asked)
		if asked-began > maxWait*time.Duration(levels) {
			t.giveUp(messages, func(*Awaited) bool { return true })
		}
		err = t.ReceiveUntil(messages, inTime, min(pause, maxAnswer))
	}
	return err
}

// beginWait returns the time, and how long an answer may take.
func (t *Task) beginWait() (now, limit time.Duration) {
	e := t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now(), e.lateness.limit()
}

// askLate asks the processes whose messages are missing for their progress.
func (t *Task) askLate(messages []Awaited) (asked time.Duration) {
	e := t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range messages {
		m := &messages[i]
		if m.Settled() || m.Silent {
			continue
		}
		m.before = e.peers.of(m.From).reports
		head, body := e.progressReport(true)
		e.sender.enqueue(outMsg{m.From, head, body})
	}
	return e.now()
}

// noteAnswers takes in how long answers took, or which have not come.
func (t *Task) noteAnswers(messages []Awaited, asked time.Duration) {
	if !allAnswered(messages) {
		t.giveUp(messages, func(m *Awaited) bool { return !m.answered })
		return
	}
	if len(messages) > 0 {
		t.engine.mu.Lock()
		defer t.engine.mu.Unlock()
		t.engine.lateness.note(t.engine.now() - asked)
	}
}

// giveUp takes senders for silent whose messages are missing.
func (t *Task) giveUp(messages []Awaited, silent func(*Awaited) bool) {
	t.engine.mu.Lock()
	defer t.engine.mu.Unlock()
	for i := range messages {
		if m := &messages[i]; !m.Settled() && silent(m) {
			m.Silent, t.engine.peers.of(m.From).silent = true, true
		}
	}
}

// lookFor brings messages up to date.
func (t *Task) lookFor(messages []Awaited) {
	for i := range messages {
		m := &messages[i]
		if m.Here {
			continue
		}
		s, peer := t.call.mailbox.slot(envelope{m.Step, m.From, t.ID}), t.engine.peers.of(m.From)
		m.Body, m.Here, s.awaited = s.payload.Bytes, s.here, !s.here
		m.Gone = peer.down || t.engine.peers.failedIn[m.From] != 0
		m.Silent, m.answered = peer.silent, peer.reports != m.before
	}
}

// stopWaiting marks messages as no longer awaited. If the call has timed out they stay
// awaited, because the error names their senders.
func (t *Task) stopWaiting(messages []Awaited) {
	if t.ctx.Err() != nil {
		return
	}
	for _, m := range messages {
		t.call.mailbox.slot(envelope{m.Step, m.From, t.ID}).awaited = false
	}
}

// lateness is how long other processes take to answer.
type lateness struct{ mean, deviation time.Duration }

// Limits of a wait: for an answer, and for a message of a process that has answered. The
// shortest one is beyond what ordinary hosts take a process's processor away for.
const (
	minAnswer = 16 * time.Millisecond
	maxAnswer = 500 * time.Millisecond
	maxWait   = 2 * time.Second
)

// limit returns how long to wait for an answer.
func (l *lateness) limit() time.Duration {
	if l.mean == 0 {
		return maxAnswer // nothing is known yet
	}
	return min(max(minAnswer, l.mean+4*l.deviation), maxAnswer)
}

// note takes in how long an answer took.
func (l *lateness) note(d time.Duration) {
	if l.mean == 0 {
		l.mean, l.deviation = max(d, 1), d/2
		return
	}
	l.deviation += ((d - l.mean).Abs() - l.deviation) / 4
	l.mean = max(l.mean+(d-l.mean)/8, 1)
}
