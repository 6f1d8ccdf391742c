package membership

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// sentTo returns how many frames of a kind a member sends to a rank now.
func (a *asker) sentTo(to protocol.Rank, kind Kind) int {
	return len(framesOf(a.Machine, a.now, kind)[to])
}

// run has a member do what is due now.
func (a *asker) run() {
	for _, _, ok := a.Next(a.now); ok; _, _, ok = a.Next(a.now) {
	}
}

// attempted returns a member of five that coordinates a view without rank 4. Ranks 2 and 3
// have promised, rank 1 has not.
func (a *asker) attempted(t *testing.T) *asker {
	t.Helper()
	a.Suspect(a.now, 4, 1)
	a.step(a.now)
	for _, from := range []int{2, 3} {
		promise := frame{kind: Promise, view: 1, incarnation: 1, ballot: a.proposer.ballot, members: newSet(5)}
		promise.members.add(from)
		if err := a.Receive(a.now, protocol.Rank(from), promise.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	a.proposer.resend, a.proposer.deadline = protocol.Never, protocol.Never
	return a
}

// awaits has a coordinator wait for an answer of rank 1.
func (a *asker) awaits() *asker {
	a.Suspect(a.now, 4, 1)
	a.step(a.now)
	a.abandon()
	a.await(a.now, []int{1})
	return a
}

// What is to happen at a time happens then, and not a nanosecond before.
func TestTimesAreKept(t *testing.T) {
	const at = 1000 * second
	type times struct {
		self     int
		before   func(a *asker)      // makes it due
		happened func(a *asker) bool // then
	}
	claimant := func(a *asker) {
		a.Join(a.now, 1, Member{Identity: "p3", Address: "elsewhere", Nonce: 9, Version: a.view.Version}, false)
		a.step(a.now)
	}
	for what, c := range map[string]times{
		"a report ends": {0, func(a *asker) {
			a.suspicions.reported = []reported{{report{3, []suspect{{4, 1, 0}}}, 3, at}}
		}, func(a *asker) bool { a.run(); return len(a.Unreachable()) == 0 && len(a.Accusers()) == 0 }},
		"a candidate is refused": {1, func(a *asker) {
			a.Join(a.now, 1, Member{Identity: "new", Nonce: 9, Version: a.view.Version}, false)
			a.pending[0].until = at
		}, func(a *asker) bool { a.run(); return len(a.answers) == 1 }},
		"a holder is asked again": {1, func(a *asker) {
			claimant(a)
			a.pending[0].probe.due, a.pending[0].probe.until, a.pending[0].until = at, 2*at, 2*at
		}, func(a *asker) bool { return a.sentTo(3, Ping) == 1 }},
		"a holder is taken for gone": {1, func(a *asker) {
			claimant(a)
			a.pending[0].probe.until, a.pending[0].until = at, 2*at
		}, func(a *asker) bool { a.run(); return a.pending[0].ready }},
		"an attempt ends": {0, func(a *asker) {
			a.attempted(t).proposer.deadline = at
		}, func(a *asker) bool { a.run(); return a.proposer == nil }},
		"an attempt asks again": {0, func(a *asker) {
			a.attempted(t).proposer.resend = at
		}, func(a *asker) bool { return a.sentTo(1, Prepare) == 1 }},
		"an attempt shows that it is not silent": {0, func(a *asker) {
			a.attempted(t).proposer.resend = at - 1
			a.proposer.shown = at - a.config.AckTimeout/2
		}, func(a *asker) bool { return a.sentTo(2, Prepare) == 1 }},
		"an attempt ends for a death": {0, func(a *asker) {
			a.attempted(t).proposer.grace = at
			a.Suspect(a.now, 3, 1)
		}, func(a *asker) bool { a.run(); return a.stats.Canceled == 1 }},
		"an attempt that fails ends patience": {0, func(a *asker) {
			a.attempted(t).proposer.deadline = at - 1
			a.acceptor.tried = at - a.patience()
		}, func(a *asker) bool { a.run(); return slices.Equal(a.Unreachable(), []protocol.Rank{1, 4}) }},
		"the next attempt": {0, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.pause = at
		}, func(a *asker) bool { a.run(); return a.proposer != nil }},
		"the next attempt after news": {0, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.acceptor.tried, a.acceptor.news = 1, news{excluded: 1, last: at - a.config.RetryInterval, begun: at}
		}, func(a *asker) bool { a.run(); return a.proposer != nil }},
		"the next attempt after long news": {0, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.acceptor.tried, a.acceptor.news = 1, news{excluded: 1, last: at, begun: at - a.config.AttemptTimeout}
		}, func(a *asker) bool { a.run(); return a.proposer != nil }},
		"an awaited member is asked again": {0, func(a *asker) {
			a.awaits().awaiting.due = at
			a.awaiting.since, a.awaiting.shown = at, at
		}, func(a *asker) bool { return a.sentTo(1, Ping) == 1 }},
		"a coordinator that waits shows that it is not silent": {0, func(a *asker) {
			a.awaits().awaiting.shown = at - a.config.AckTimeout/2
			a.awaiting.since = at
		}, func(a *asker) bool { return a.sentTo(2, Ping) == 1 }},
		"patience with an awaited member ends": {0, func(a *asker) {
			a.awaits().awaiting.since = at - a.patience()
		}, func(a *asker) bool { a.run(); return slices.Equal(a.Unreachable(), []protocol.Rank{1, 4}) }},
		"patience with a coordinator ends": {1, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.step(a.now)
			a.reporter.heard, a.silence = at, silence{asked: at - 2*a.patience(), looked: at - 1}
		}, func(a *asker) bool { a.run(); return slices.Equal(a.Unreachable(), []protocol.Rank{0, 4}) }},
		"a member knows that it was stopped": {1, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.step(a.now)
			a.silence = silence{asked: at - second, looked: at - 1 - 2*a.config.StatusInterval}
		}, func(a *asker) bool { a.run(); return a.silence.asked == a.now }},
		"a report goes elsewhere": {4, func(a *asker) {
			a.Suspect(a.now, 3, 1)
			a.step(a.now)
			a.reporter.heard = at - a.config.answerTimeout()
			a.silence = silence{asked: at - second, looked: at - 1}
		}, func(a *asker) bool { return a.sentTo(1, Report) == 1 }},
		"a report is repeated": {1, func(a *asker) {
			a.Suspect(a.now, 4, 1)
			a.step(a.now)
			a.reporter.due = at
		}, func(a *asker) bool { return a.sentTo(0, Report) == 1 }},
		"a status": {0, func(a *asker) { a.status.due = at }, func(a *asker) bool { return a.sentTo(1, Status) == 1 }},
		"a member is stuck": {1, func(a *asker) {
			a.acceptor.frozen, a.acceptor.since = true, at-2*a.config.AttemptTimeout
		}, func(a *asker) bool {
			return slices.ContainsFunc(framesOf(a.Machine, a.now, Status)[0], func(f *frame) bool { return f.stuck })
		}},
		"a member that is ahead is asked again": {0, func(a *asker) { a.status.asked = at }, func(a *asker) bool {
			later := frame{kind: Ping, view: 2, incarnation: 1}
			if err := a.Receive(a.now, 3, later.append(nil)); err != nil {
				t.Error(err)
			}
			return a.sentTo(3, Status) == 1
		}},
		"a sign of life is asked for again": {0, func(a *asker) {
			a.SetQuiet(a.now, true)
			a.step(a.now)
			a.doubt.again, a.doubt.until, a.status.due = at, at+1, 2*at
		}, func(a *asker) bool { return a.sentTo(1, Status) == 1 }},
		"a sign of life is too late": {0, func(a *asker) {
			a.SetQuiet(a.now, true)
			a.step(a.now)
			a.doubt.until = at
		}, func(a *asker) bool { a.run(); return len(a.Unreachable()) == 4 }},
		"a round was too long": {0, func(a *asker) {
			a.SetQuiet(a.now, true)
			a.step(a.now)
			a.doubt.until = at - 1 - a.config.RetryInterval
		}, func(a *asker) bool { a.run(); return len(a.Unreachable()) == 0 }},
		"a timer is late": {0, func(*asker) {}, func(a *asker) bool {
			a.pace.wake = at - 1 - a.config.RetryInterval
			a.run()
			return a.pace.doubt == 1
		}},
	} {
		for early := range protocol.Time(2) {
			a := newAsker(t, func(conf *Config) { conf.Self = *conf.View.Members.At(c.self) })
			c.before(a)
			a.now, a.pace = at-early, pace{}
			if got := c.happened(a); got != (early == 0) {
				t.Errorf("%s, %d ns before its time: %t", what, early, got)
			}
		}
	}
}
