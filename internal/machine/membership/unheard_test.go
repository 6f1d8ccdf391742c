package membership

import (
	"testing"
	"time"
)

// Half of a group is cut off, and each member suspects only its neighbor behind the cut.
// The half that may not go on knows it soon, although its coordinator is behind the cut.
func TestMembersBehindACutKnowSoon(t *testing.T) {
	n := newNetwork(t, 4, 1, nil)
	n.blocked = func(from, to *host) bool { return (from.id < 2) != (to.id < 2) }
	n.suspect(n.hosts[3], n.hosts[0].self)
	n.suspect(n.hosts[2], n.hosts[1].self)
	n.pump(n.hosts[3])
	n.pump(n.hosts[2])
	n.run(2*time.Second, nil)
	for _, h := range n.hosts[2:] {
		if s, err := h.m.State(); s != NoQuorum {
			t.Errorf("host %d is %v: %v", h.id, s, err)
		}
	}
}

// One link is broken: the coordinator does not get the reports of the only member that
// knows of a death. Another member passes them on.
func TestReportsTakeAnotherWay(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	n.blocked = func(from, to *host) bool { return from.id == 4 && to.id == 0 }
	n.kill(3)
	n.suspect(n.hosts[4], n.hosts[3].self)
	n.pump(n.hosts[4])
	learned := func() bool { return n.hosts[0].m.suspected().has(3) }
	if !n.run(3*time.Second, learned) {
		t.Fatal(n.situation())
	}
}

// A member goes on reporting to a coordinator that answers, however long the change takes: another
// way is for one that does not answer.
func TestReportsGoToACoordinatorThatAnswers(t *testing.T) {
	for _, answers := range []bool{true, false} {
		a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(4), 0 })
		a.Suspect(a.now, 3, 1)
		elsewhere := 0
		for a.now < 4*second {
			sent := framesOf(a.Machine, a.now+100*millisecond, Report)
			elsewhere += len(sent[1])
			if status := (frame{kind: Status, view: 1, incarnation: 1}); answers && len(sent[0]) > 0 {
				if err := a.Receive(a.now, 0, status.append(nil)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if elsewhere > 0 == answers {
			t.Errorf("the coordinator answers: %t, and %d reports go to the next rank", answers, elsewhere)
		}
	}
}

// A coordinator that is heard again gets the reports again.
func TestReportsGoBackToTheCoordinator(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(4), 0 })
	a.Suspect(a.now, 3, 1)
	a.step(5 * second / 2)
	if a.reporter.to != 1 {
		t.Fatalf("it reports to rank %d", a.reporter.to)
	}
	a.receive(t, 0, frame{kind: Status})
	if a.sentTo(0, Report) != 1 {
		t.Error("the coordinator gets no report")
	}
}

// A coordinator need not answer a member that was stopped, that passes on only what others have
// reported, or whose suspect is left out of an attempt already.
func TestCoordinatorNeedNotAnswer(t *testing.T) {
	const at = 1000 * second
	for what, change := range map[string]func(a *asker){
		"":                   func(*asker) {},
		"it was stopped":     func(a *asker) { a.silence.looked = 1 },
		"others' suspicions": func(a *asker) { a.suspicions.own = nil; a.suspicions.marked = nil },
		"an attempt": func(a *asker) {
			without := set(nil).complement(5)
			without.remove(3)
			a.acceptor.current = a.newBallotState(Ballot{1, 0}, without)
		},
		"an attempt of another one": func(a *asker) {
			without := set(nil).complement(5)
			without.remove(3)
			a.acceptor.current = a.newBallotState(Ballot{1, 1}, without)
		},
		"an attempt with it": func(a *asker) { a.acceptor.current = a.newBallotState(Ballot{1, 0}, set(nil).complement(5)) },
	} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(4) })
		a.suspicions.reported = []reported{{report{2, []suspect{{3, 1, 0}}}, 2, 2 * at}}
		a.Suspect(a.now, 3, 1)
		a.step(a.now)
		a.now, a.pace, a.reporter.heard = at, pace{}, at-a.config.answerTimeout()
		a.silence = silence{asked: at - second, looked: at - 1}
		change(a)
		a.run()
		want := what == "" || what == "an attempt of another one" || what == "an attempt with it"
		if got := a.live[unheard].has(0); got != want {
			t.Errorf("%q: the coordinator counts as unheard: %t", what, got)
		}
	}
}
