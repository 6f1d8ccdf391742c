package broadcast

import "github.com/pleach-go/pleach/protocol"

// Process is one process in one broadcast: it is colored, passes the
// message on (dissemination), then closes gaps on the ring (correction). It is
// a [protocol.Machine]; its disseminator and its corrector say how.
type Process struct {
	// All of it fits a cache line, which simulations of many feel.
	plan          *Plan
	dissemination disseminator
	correction    corrector     // nil: none
	began         protocol.Time // when it was colored; with a clock in messages, when the broadcast began
	self          int32         // the rank
	sent          int32         // how many messages dissemination has sent
	stage         stage
	corrected     bool // colored by correction, not in time by dissemination
}

// stage is how far a process has got. It only ever moves forward.
type stage uint8

const (
	uncolored stage = iota
	spreading
	correcting
	finished
)

// disseminator is the state of a process in dissemination. Its zero value is ready:
// begin is called once, when the process is colored.
type disseminator interface {
	// begin tells it that the process has just been colored, by m.
	begin(p *Process, now protocol.Time, m *Message)
	// handle takes a message of dissemination (or an acknowledgment) that
	// arrives, the one that colored the process included.
	handle(p *Process, now protocol.Time, m *Message)
	// next says what to send, or Done when dissemination is over here.
	next(p *Process, now protocol.Time, a *Action)
}

// corrector is the state of a process in correction. Its zero value is ready: begin
// is called once, when the process is colored.
type corrector interface {
	// begin tells it that the process has just been colored.
	begin(p *Process, now protocol.Time)
	// handle takes a correction message that arrives, the one that colored the
	// process included. It may come before correction has started here.
	handle(p *Process, now protocol.Time, m *Message)
	// next says what to send, or Done when correction is over here.
	next(p *Process, now protocol.Time, a *Action)
}

// rank is the process's own.
func (p *Process) rank() protocol.Rank { return protocol.Rank(p.self) }

// Complete reports whether the process is colored.
func (p *Process) Complete() bool { return p.stage != uncolored }

// Receive takes a message that has arrived.
//
// Integrity and no duplicates (Corrected Trees §2.1): a process is colored only
// by a message of a colored one, and only once.
func (p *Process) Receive(now protocol.Time, m *protocol.Message[Body]) {
	if p.stage == uncolored {
		p.color(now, m)
	}
	if p.stage == finished {
		return
	}
	switch {
	case m.Phase != protocol.Correction:
		p.dissemination.handle(p, now, m)
	case p.correction != nil:
		p.correction.handle(p, now, m)
	}
}

// Next says what to send now that the port is free: all of dissemination
// first, then correction.
func (p *Process) Next(now protocol.Time, a *protocol.Action[Body]) {
	switch p.stage {
	case correcting:
		if start := p.start(); now < start {
			a.WaitUntil(start)
			return
		}
		p.correction.next(p, now, a)
	case spreading:
		p.dissemination.next(p, now, a)
		if a.Verb != protocol.Done {
			return
		}
		p.stage = finished
		if p.corrects() {
			p.stage = correcting
			p.Next(now, a)
		}
	case uncolored:
		a.Wait()
	default:
		a.Done()
	}
}

// Report passes a failure detector's word to a dissemination that listens.
func (p *Process) Report(now protocol.Time, failed protocol.Rank) {
	if o, ok := p.dissemination.(observer); ok {
		o.report(p, now, failed)
	}
}

// observer is a dissemination that needs a failure detector. Reports may come
// before the process is colored, so they are forgotten between broadcasts, not
// when dissemination begins.
type observer interface {
	report(p *Process, now protocol.Time, failed protocol.Rank)
	forget()
}

// color makes the process colored by m.
func (p *Process) color(now protocol.Time, m *Message) {
	p.began = p.plan.beginning(now, m)
	// What arrives at the very start of correction still counts as
	// dissemination; what arrives later came too late for it.
	synchronized := p.plan.start == Synchronized
	p.corrected = m.Phase == protocol.Correction || synchronized && now > p.start()
	p.stage = spreading
	if p.corrected && synchronized {
		p.joinLate(now)
		return
	}
	p.dissemination.begin(p, now, m)
	if p.correction != nil {
		p.correction.begin(p, now)
	}
}

// start is when correction may start here.
func (p *Process) start() protocol.Time {
	if p.plan.hop == 0 {
		return p.plan.at
	}
	return p.began + p.plan.at
}

// joinLate settles what a process does that correction colored after a
// synchronized start: "processes that get colored by correction do not send
// any messages themselves" (Corrected Trees §3.1), but where a correction
// gives them a duty.
func (p *Process) joinLate(now protocol.Time) {
	if !p.plan.correction.lateDuty() {
		p.stage = finished
		return
	}
	p.stage = correcting
	p.correction.begin(p, now)
}

// corrects reports whether a process that has passed the message on also
// corrects. One colored early, by an overlapped correction that was faster than
// the tree, may be asked not to.
func (p *Process) corrects() bool {
	return p.correction != nil && p.plan.ring.Size > 1 && (!p.corrected || !p.plan.earlyOnlyRelay)
}

// Reset makes the process as good as new, for another broadcast by the same
// plan.
func (p *Process) Reset() {
	p.began, p.sent, p.stage, p.corrected = 0, 0, uncolored, false
	if p.plan.detector {
		p.dissemination.(observer).forget()
	}
	if p.rank() == p.plan.root {
		p.color(0, &Message{From: protocol.NoRank, Phase: protocol.Dissemination})
	}
}
