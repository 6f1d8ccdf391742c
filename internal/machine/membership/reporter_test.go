package membership

import (
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Each reason to report is enough, and is reported again and again. Without one, nothing is.
func TestEachReasonIsReported(t *testing.T) {
	others := []reported{{report{3, []suspect{{4, 1, 0}}}, 3, second}}
	for what, c := range map[string]struct {
		kind   Kind
		repeat bool
		have   func(a *asker)
	}{
		"nothing":                     {Report, false, func(*asker) {}},
		"nothing: the version it has": {Raise, false, func(a *asker) { _ = a.RaiseVersion(a.now, a.view.Version) }},
		"nothing: the meta it has":    {MetaChange, false, func(a *asker) { _ = a.SetMeta(a.now, "") }},
		"a suspicion":                 {Report, true, func(a *asker) { a.Suspect(a.now, 4, 1) }},
		"another's suspicion":         {Report, true, func(a *asker) { a.suspicions.reported = others }},
		"both": {
			Report, true,
			func(a *asker) { a.suspicions.reported = others; a.Suspect(a.now, 4, 1) },
		},
		"a suspicion that is withdrawn": {Report, false, func(a *asker) { a.Suspect(a.now, 4, 1); a.Trust(a.now, 4, 1) }},
		"a silent coordinator": {Report, true, func(a *asker) {
			a.acceptor.frozen, a.acceptor.since = true, a.now-2*a.config.AttemptTimeout
			a.silenced(0)
		}},
		"abstention": {Status, true, func(a *asker) { a.abstains = true }},
		"a leave":    {Leave, true, func(a *asker) { a.Leave(a.now) }},
		"a meta":     {MetaChange, true, func(a *asker) { _ = a.SetMeta(a.now, "x") }},
		"a version":  {Raise, true, func(a *asker) { _ = a.RaiseVersion(a.now, a.view.Version+1) }},
		"a candidate": {JoinRequest, true, func(a *asker) {
			a.Join(a.now, 1, Member{Identity: "new", Nonce: 9, Version: a.view.Version}, false)
		}},
	} {
		a := newAsker(t, func(c *Config) { c.View.Version--; c.Self = *c.View.Members.At(2) })
		c.have(a)
		a.run()
		if n := a.stats.Sent[c.kind]; n > 0 == strings.HasPrefix(what, "nothing") || c.kind == Report && n > 1 {
			t.Errorf("%s: sent %d times", what, n)
		}
		before := a.stats.Sent[c.kind]
		a.now = min(a.Deadline(), a.now+a.config.RetryInterval)
		a.run()
		if a.stats.Sent[c.kind] > before != c.repeat {
			t.Errorf("%s: repeated %t", what, !c.repeat)
		}
	}
}

// A new connection to the member that gets the reports is a reason to report at once: the last
// one may be lost. A connection to another member is none, and a process that is no member, or is
// this one, is not told anything.
func TestConnectionRepeatsReports(t *testing.T) {
	for peer, told := range map[protocol.Rank][2]uint64{0: {1, 1}, 1: {0, 1}, 2: {0, 0}, 9: {0, 0}} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
		a.Suspect(a.now, 4, 1)
		a.run()
		before := a.stats.Sent
		a.Up(a.now, peer)
		a.run()
		if got := [2]uint64{a.stats.Sent[Report] - before[Report], a.stats.Sent[Status] - before[Status]}; got != told {
			t.Errorf("to rank %d: %d reports and %d statuses, want %v", peer, got[0], got[1], told)
		}
	}
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
	a.Up(a.now, 0)
	a.run()
	if a.reporter.due != protocol.Never {
		t.Error("it reports nothing")
	}
	a.Removed(a.now, 9, nil)
	a.Up(a.now, 0)
	if a.sentTo(0, Status) > 0 {
		t.Error("a member that has ended tells its status")
	}
	b := newAsker(t, nil).awaits()
	b.Up(b.now, 1)
	if b.live[awaited].count() > 0 {
		t.Error("a member that has connected is waited for")
	}
}

// The owner of the last ballot gets reports, too: it may wait for just the suspected member.
func TestProposerGetsReports(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
	prepare := frame{kind: Prepare, view: 1, incarnation: 1, ballot: Ballot{1, 1}, members: set(nil).complement(5)}
	if err := a.Receive(a.now, 1, prepare.append(nil)); err != nil {
		t.Fatal(err)
	}
	a.Suspect(a.now, 4, 1)
	sent := framesOf(a.Machine, a.now, Report)
	if len(sent) != 2 || len(sent[0]) != 1 || len(sent[1]) != 1 {
		t.Errorf("%d members get reports", len(sent))
	}
	b := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
	b.Suspect(b.now, 0, 1)
	if sent := framesOf(b.Machine, b.now, Report); len(sent) != 1 || len(sent[1]) != 1 {
		t.Errorf("without a ballot, %d members get reports", len(sent))
	}
}

// A member that is asked to take part in a ballot with a suspect tells the owner of the ballot at
// once, unless that gets its reports anyway.
func TestProposerWithASuspectIsTold(t *testing.T) {
	for _, c := range []struct {
		owner protocol.Rank
		with  bool
		told  bool
	}{{1, true, true}, {1, false, false}, {0, true, false}} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(2) })
		a.Suspect(a.now, 4, 1)
		a.run()
		members := set(nil).complement(5)
		if !c.with {
			members.remove(4)
		}
		a.receive(t, c.owner, frame{kind: Prepare, ballot: Ballot{1, c.owner}, members: members})
		if told := a.sentTo(c.owner, Report) == 1; told != c.told {
			t.Errorf("a ballot of rank %d, with the suspect %t: told %t", c.owner, c.with, told)
		}
	}
}

// A member passes on what others have reported, but not to those that it comes from, and not what
// members have said that it suspects itself. It tells no member that it is suspected.
func TestPassedOnReports(t *testing.T) {
	about := func(by, via protocol.Rank, ranks ...protocol.Rank) reported {
		r := reported{report{by: by}, via, second}
		for _, rank := range ranks {
			r.suspects = append(r.suspects, suspect{rank, 1, 0})
		}
		return r
	}
	for what, c := range map[string]struct {
		reported reported
		passed   []protocol.Rank
	}{
		"another's":                        {about(2, 2, 4), []protocol.Rank{4}},
		"through a relay":                  {about(2, 4, 1), []protocol.Rank{1}},
		"of the receiver":                  {about(0, 2, 4), nil},
		"through the receiver":             {about(2, 0, 4), nil},
		"of a suspect":                     {about(1, 2, 4), nil},
		"through a suspect":                {about(2, 1, 4), nil},
		"about the receiver":               {about(2, 2, 0, 4), []protocol.Rank{4}},
		"about this member":                {about(2, 2, 3, 4), []protocol.Rank{4}},
		"about no member":                  {about(2, 2, 4, 9), []protocol.Rank{4}},
		"about an earlier incarnation":     {reported{report{2, []suspect{{4, 0, 0}}}, 2, second}, nil},
		"about what it suspects itself":    {about(2, 2, 1), []protocol.Rank{1}},
		"about nothing but this very rank": {about(2, 2, 3), nil},
	} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(3) })
		a.suspicions.own = []suspect{{1, 1, 0}}
		a.suspicions.reported = []reported{c.reported}
		var passed []protocol.Rank
		for _, r := range a.mergedReports(0)[1:] {
			for _, x := range r.suspects {
				passed = append(passed, x.rank)
			}
		}
		if !slices.Equal(passed, c.passed) {
			t.Errorf("%s: %v is passed on, want %v", what, passed, c.passed)
		}
		if got := a.mergedReports(4); len(got) != 1 {
			t.Errorf("%s: a higher rank gets reports of %d members", what, len(got))
		}
	}
}

// The coordinator does not count what comes through a member that it suspects.
func TestReportsThroughSuspectsDoNotCount(t *testing.T) {
	for _, r := range []reported{
		{report{2, []suspect{{4, 1, 0}}}, 1, second},
		{report{1, []suspect{{4, 1, 0}}}, 2, second},
	} {
		a := newAsker(t, nil)
		a.suspicions.reported = []reported{r}
		if !a.suspected().has(4) {
			t.Error("a report does not count")
		}
		a.Suspect(a.now, 1, 1)
		if a.suspected().has(4) || !a.suspected().has(1) {
			t.Errorf("what rank %d says through %d counts", r.by, r.via)
		}
	}
}

// A report names all that a member suspects, and the silent ones that would coordinate in the place
// of its receiver, each once.
func TestAccused(t *testing.T) {
	for to, want := range map[protocol.Rank][]protocol.Rank{0: {3}, 1: {0, 3}, 2: {0, 3}, 4: {0, 2, 3}} {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1) })
		a.suspicions.own = []suspect{{3, 1, 0}}
		a.silenced(0, 2, 3)
		var got []protocol.Rank
		for _, x := range a.accused(to) {
			got = append(got, x.rank)
		}
		if !slices.Equal(got, want) {
			t.Errorf("to rank %d, %v are accused, want %v", to, got, want)
		}
	}
}
