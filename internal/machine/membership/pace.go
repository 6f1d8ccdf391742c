package membership

import "github.com/pleach-go/pleach/protocol"

// pace is what this member knows of the time that others take to answer, and of its own
// health. All that a coordinator waits for follows from it: on a slow network, or among
// members that are overloaded, a fixed timeout gives up each attempt before it can succeed,
// and makes it again, forever. Nothing is learned from an answer that does not come.
type pace struct {
	answer protocol.Time // how long it takes until most of those asked have answered
	wake   protocol.Time // when this member wants to be called again; 0: it has been
	doubt  int           // how many of its last timers were late, up to maxDoubt
}

const (
	maxDoubt = 8 // as in Lifeguard
	// patienceFactor is how many times as long as most of the others a member may take to
	// answer.
	patienceFactor = 8
)

// learn takes in how long it took until most of those asked had answered. That may be as
// long as this member was stopped, or as a partition lasted, so what is known at most
// doubles, or becomes surprise: where answers take long, the next ones do, too. One quick
// answer does not mean that all are, so what is known at most halves.
func (p *pace) learn(took, surprise protocol.Time) {
	p.answer = max(p.answer/2, min(took, max(2*p.answer, surprise)))
}

// learnAnswers takes in that most of those asked since a time have answered.
func (m *Machine) learnAnswers(since protocol.Time) {
	m.pace.learn(m.now-since, m.config.AckTimeout/2)
}

// forget forgets a part of that with every view: what was slow may be fast again.
func (p *pace) forget() { p.answer -= p.answer / 4 }

// learnFromCoordinator takes in how long the coordinator took to show that it has got a
// report. It may have been stopped, so a long time counts in part only.
func (m *Machine) learnFromCoordinator(took protocol.Time) {
	m.pace.learn(min(took, m.config.AckTimeout/2), took)
}

// awake compares the time of a call with the one that this member has asked for. A member
// whose timers are late doubts itself before it takes others for silent (local health
// awareness: Dadgar, Phillips & Currey 2018, Lifeguard).
func (p *pace) awake(now, tolerated protocol.Time) {
	switch late := now - p.wake; {
	case p.wake == 0 || late < 0:
		return
	case late > tolerated:
		p.doubt = min(p.doubt+1, maxDoubt)
	default:
		p.doubt = max(p.doubt-1, 0)
	}
	p.wake = 0
}

// patience is how long another member may hold up a change by not answering.
func (m *Machine) patience() protocol.Time {
	return max(m.config.AckTimeout, patienceFactor*m.pace.answer) * protocol.Time(1+m.pace.doubt)
}

// attemptWait is how long an attempt waits for the next acknowledgment. It covers the
// answers to a retransmission.
func (m *Machine) attemptWait() protocol.Time { return max(m.attemptTimeout, 4*m.pace.answer) }

// retreat is how long this member waits after an attempt of its own that has failed. Higher
// ranks wait for longer, so that two proposers do not preempt each other forever.
func (m *Machine) retreat() protocol.Time {
	longest := max(maxRetreat*m.config.AttemptTimeout, 2*m.pace.answer)
	return min(m.attemptWait(), longest) + protocol.Time(min(m.self, maxRankBackoff))*m.config.RetryInterval
}

const (
	maxRetreat     = 4 // times AttemptTimeout
	maxRankBackoff = 8
)

// askAgain returns the time until a question that is not answered is asked again: twice as
// long with every retransmission, up to twice the time that an answer takes (Jacobson 1988).
// It begins short, whatever answers take: if the question is lost, its answer takes as long
// as this wait, and a wait that followed from that would grow without a bound.
func (m *Machine) askAgain(tries int) protocol.Time {
	longest := max(maxBackoff*m.config.RetryInterval, 2*m.pace.answer)
	return min(m.config.RetryInterval<<min(tries, 20), longest)
}

// lease is how long reports and join requests count unless they are repeated.
func (m *Machine) lease() protocol.Time {
	return leaseFactor*m.config.RetryInterval + patienceFactor*m.pace.answer
}
