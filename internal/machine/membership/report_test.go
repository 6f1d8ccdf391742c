package membership

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A suspicion goes to the coordinator, and to the proposer of the last attempt if that is another
// member: once to each.
func TestReportsGoToTheCoordinatorAndTheProposer(t *testing.T) {
	for what, c := range map[string]struct {
		self     int
		promised Ballot
		abstains bool // rank 0
		want     []protocol.Rank
	}{
		"no attempt":                  {3, Ballot{}, false, []protocol.Rank{0}},
		"the coordinator's attempt":   {3, Ballot{1, 0}, false, []protocol.Rank{0}},
		"another's attempt":           {3, Ballot{1, 1}, false, []protocol.Rank{0, 1}},
		"its own attempt":             {3, Ballot{1, 3}, false, []protocol.Rank{0}},
		"another coordinates":         {3, Ballot{}, true, []protocol.Rank{1}},
		"it coordinates":              {1, Ballot{}, true, nil},
		"another was the coordinator": {3, Ballot{1, 0}, true, []protocol.Rank{0, 1}},
	} {
		for _, withdrawn := range []bool{false, true} {
			a := newAsker(t, func(conf *Config) { conf.Self, conf.DoubtTimeout = *conf.View.Members.At(c.self), 0 })
			a.acceptor.promised = c.promised
			a.noteAbstention(0, c.abstains)
			a.Suspect(a.now, 4, 1)
			if withdrawn {
				a.step(a.now)
				a.Trust(a.now, 4, 1)
			}
			var got []protocol.Rank
			for r, sent := range framesOf(a.Machine, a.now, Report) {
				for range sent {
					got = append(got, r)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, withdrawn %t: it reports to %v, want %v", what, withdrawn, got, c.want)
			}
		}
	}
}

// Reports go to the next rank while the coordinator does not answer, and to the coordinator again
// once it is heard.
func TestReportsReturnToTheCoordinator(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(4), 0 })
	a.Suspect(a.now, 3, 1)
	for a.reporter.to == 0 && a.now < 10*second {
		a.step(a.now + 100*millisecond)
	}
	if a.reporter.to != 1 || !slices.Equal(a.Unreachable(), []protocol.Rank{0, 3}) {
		t.Fatalf("it reports to %d, and cannot reach %v", a.reporter.to, a.Unreachable())
	}
	a.step(a.now + a.config.answerTimeout() - 100*millisecond)
	if a.reporter.to != 1 {
		t.Errorf("it reports to %d before rank 1 has had its time", a.reporter.to)
	}
	a.receive(t, 0, frame{kind: Status})
	if sent := framesOf(a.Machine, a.now, Report); len(sent[0]) != 1 || len(sent[1]) > 0 || len(a.Unreachable()) != 1 {
		t.Errorf("it reports to %d, and cannot reach %v", a.reporter.to, a.Unreachable())
	}
}

// A report that is due waits for no other, although another member reports something new.
func TestDueReportDoesNotWait(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(1), 0 })
	a.receive(t, 2, frame{kind: Report, reports: []report{{2, []suspect{{4, 1, 0}}}}})
	a.step(a.now + millisecond)
	a.receive(t, 3, frame{kind: Report, reports: []report{{3, []suspect{{2, 1, 0}}}}})
	a.step(a.reporter.due - 1)
	a.now++
	a.receive(t, 4, frame{kind: Report, reports: []report{{4, []suspect{{3, 1, 0}}}}})
	if sent := framesOf(a.Machine, a.now, Report)[0]; len(sent) != 1 {
		t.Errorf("%d reports", len(sent))
	}
}

// A member that abstains attempts nothing, and reports to the next rank what it suspects.
func TestAbstainingMemberAttemptsNothing(t *testing.T) {
	for _, abstains := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
		a.abstains = abstains
		a.Suspect(a.now, 4, 1)
		reported := len(framesOf(a.Machine, a.now, Report)[1]) > 0
		if a.proposer != nil == abstains || reported != abstains {
			t.Errorf("it abstains: %t, attempts: %t, reports: %t", abstains, a.proposer != nil, reported)
		}
	}
}

// A suspicion is about an incarnation, and those before: it does not count against a later one, and
// only trust in the same or a later one ends it.
func TestSuspicionsAreOfAnIncarnation(t *testing.T) {
	for _, c := range []struct {
		suspected []uint64
		trusted   uint64
		counts    bool
	}{
		{[]uint64{2}, 0, false},
		{[]uint64{3}, 0, true},
		{[]uint64{4}, 0, true},
		{[]uint64{2, 3}, 0, true},
		{[]uint64{3, 2}, 0, true},
		{[]uint64{3}, 2, true},
		{[]uint64{3}, 3, false},
		{[]uint64{4, 3}, 3, true},
	} {
		v := firstView(5)
		third := *v.Members.At(4)
		third.Incarnation, v.Number = 3, 3
		v.Members = v.Members.change(nil, third)
		m, err := New(Config{Self: *v.Members.At(0), View: v, Log: &testLog{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, incarnation := range c.suspected {
			m.Suspect(1, 4, incarnation)
		}
		m.Trust(1, 4, c.trusted)
		if counts := m.suspected().has(4); counts != c.counts {
			t.Errorf("%v suspected, %d trusted: it counts: %t", c.suspected, c.trusted, counts)
		}
	}
}

// A report that is not repeated ends, and the others do not end with it.
func TestReportEndsAlone(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(1), 0 })
	a.receive(t, 3, frame{kind: Report, reports: []report{{3, []suspect{{4, 1, 0}}}}})
	ends := a.now + a.lease()
	a.step(a.now + second)
	a.receive(t, 3, frame{kind: Report, reports: []report{{3, []suspect{{4, 1, 0}}}}})
	again := a.now + a.lease()
	a.receive(t, 2, frame{kind: Report, reports: []report{{2, []suspect{{0, 1, 0}}}}})
	a.suspicions.reported[1].until++ // so that the other one ends first
	a.step(a.now)
	for now, want := range map[protocol.Time]int{ends: 2, again - 1: 2, again: 1, again + 1: 0} {
		m := deepCopy(a.Machine)
		m.Next(now)
		if len(m.Unreachable()) != want {
			t.Errorf("%d ns after its end: %v are unreachable", now-again, m.Unreachable())
		}
	}
}

// However many members report the same, two of them are named, this one included.
func TestReportNamesTwoSources(t *testing.T) {
	four := []suspect{{4, 1, 0}}
	for _, own := range [][]suspect{nil, four} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(3) })
		a.suspicions.own = own
		for by := range protocol.Rank(3) {
			a.suspicions.reported = append(a.suspicions.reported, reported{report{by, four}, by, second})
		}
		a.suspicions.reported = append(a.suspicions.reported, reported{report{2, four}, 1, second})
		if got := a.mergedReports(0); len(got) != maxWitnesses {
			t.Errorf("its own %v: %v", own, got)
		}
	}
}

// A member that wants to leave, and suspects none, reports no suspicions.
func TestLeaveIsNoReport(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(3) })
	a.Leave(a.now)
	a.step(a.now)
	if a.stats.Sent[Leave] != 1 || a.stats.Sent[Report] > 0 {
		t.Errorf("%d reports", a.stats.Sent[Report])
	}
}

// Where any number may decide, no coordinator is taken for silent: two would make two groups.
func TestNoCoordinatorIsSilentWithoutMajorities(t *testing.T) {
	for _, noQuorum := range []bool{false, true} {
		a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout, c.NoQuorum = *c.View.Members.At(1), 0, noQuorum })
		a.Suspect(a.now, 4, 1)
		a.step(a.now + 4*a.patience())
		if a.stats.Ballots > 0 == noQuorum {
			t.Errorf("any number may decide: %t, and it tries %d times", noQuorum, a.stats.Ballots)
		}
	}
}

// An answer or an attempt of a member ends its silence. What it says unasked does not.
func TestAnswersEndSilence(t *testing.T) {
	whole := some(0, 1, 2, 3, 4)
	for what, f := range map[string]frame{
		"a pong": {kind: Pong}, "a ping": {kind: Ping},
		"a promise":      {kind: Promise, ballot: Ballot{1, 1}, members: some(0)},
		"an acceptance":  {kind: Accept, ballot: Ballot{1, 1}, members: some(0)},
		"a refusal":      {kind: Refuse, ballot: Ballot{1, 1}, other: Ballot{2, 0}},
		"a ballot":       {kind: Prepare, ballot: Ballot{1, 0}, members: whole},
		"the end of one": {kind: Cancel, ballot: Ballot{1, 0}},
		"a proposal":     {kind: Propose, ballot: Ballot{1, 0}, value: &value{number: 2, slots: 5, removed: newSet(5)}},
		"! a status":     {kind: Status}, "! a report": {kind: Report}, "! a leave": {kind: Leave},
	} {
		a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout = *c.View.Members.At(1), 0 })
		a.Suspect(a.now, 4, 1)
		a.step(a.now)
		a.silenced(0)
		a.receive(t, 0, f)
		if ended := slices.Equal(a.Unreachable(), []protocol.Rank{4}); ended != (what[0] != '!') {
			t.Errorf("%s: %v are unreachable", what, a.Unreachable())
		}
	}
}
