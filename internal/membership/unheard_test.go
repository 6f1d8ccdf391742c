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
