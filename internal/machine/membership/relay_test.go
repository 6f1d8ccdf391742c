package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// newRelayed returns a group of 40 with relays 1 to 7, of which 1 and 2 report to the
// coordinator.
func newRelayed(t *testing.T) *network {
	return newNetwork(t, 40, 1, func(c *Config) { c.FlatThreshold, c.relays = -1, []int{8, 3} })
}

// "One change is never made slower by the traffic about it": 18 members learn of 18
// deaths, one after another, and report each. The coordinator gets few reports and makes
// few attempts.
func TestRelaysMergeReports(t *testing.T) {
	n := newRelayed(t)
	sent := map[int]int{}
	n.spy = func(from *host, kind Kind) {
		if kind == Report {
			sent[from.id]++
		}
	}
	dead := []int{22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39}
	n.kill(dead...)
	for i, d := range dead {
		by := n.hosts[4+i]
		n.suspect(by, n.hosts[d].self)
		n.pump(by)
		n.run(10*time.Microsecond, nil)
	}
	if v := n.settle(); v.Number != 2 || v.Members.Len() != 22 {
		t.Fatalf("%v", v)
	}
	if merged := sent[1] + sent[2]; merged > 10 {
		t.Errorf("the relays sent %d reports of 18 to the coordinator: %v", merged, sent)
	}
	for _, h := range n.hosts[8:22] {
		if sent[h.id] != 1 {
			t.Errorf("host %d reported %d times", h.id, sent[h.id])
		}
	}
	if b := n.hosts[0].m.Stats().Ballots; b > 7 {
		t.Errorf("%d attempts", b)
	}
}

// A relay that is dead loses reports. They are repeated directly.
func TestReportsPassDeadRelays(t *testing.T) {
	for _, relays := range [][]int{{5}, {2}, {2, 5}} {
		n := newRelayed(t)
		n.kill(append(relays, 20)...)
		n.suspect(n.hosts[21], n.hosts[20].self) // its relays are 5 and 2
		n.pump(n.hosts[21])
		learned := func() bool { return n.hosts[0].m.suspected().has(20) }
		if !n.run(100*time.Millisecond, learned) {
			t.Errorf("%v dead:\n%s", relays, n.situation())
		}
	}
}

// A withdrawal takes the ways of the suspicion, and does not wait for the end of its lease.
func TestWithdrawalsPassRelays(t *testing.T) {
	for _, repeated := range []bool{false, true} {
		n := newRelayed(t)
		n.blocked = func(from, _ *host) bool { return from.id == 0 } // no view
		source, suspect := n.hosts[21], n.hosts[20]
		n.suspect(source, suspect.self)
		n.pump(source)
		via := protocol.Rank(2)
		if repeated {
			via = 21
		}
		learned := func() bool {
			return slices.ContainsFunc(n.hosts[0].m.suspicions.reported, func(r reported) bool {
				return r.by == 21 &&
					r.via == via
			})
		}
		if !n.run(200*time.Millisecond, learned) {
			t.Fatalf("repeated %v: %+v", repeated, n.hosts[0].m.suspicions.reported)
		}
		source.m.Trust(n.now, suspect.self.Rank, suspect.self.Incarnation)
		n.pump(source)
		if !n.run(200*time.Millisecond, func() bool { return len(n.hosts[0].m.suspicions.reported) == 0 }) {
			t.Errorf("repeated %v: still %+v", repeated, n.hosts[0].m.suspicions.reported)
		}
	}
}

// A report that follows one which went directly takes the relay again, and so do those that
// withdraw something which only the relay has.
func TestReportsTakeTheRelayAgain(t *testing.T) {
	for _, c := range []struct {
		withdrawn, direct bool
		to                []protocol.Rank
	}{
		{false, false, []protocol.Rank{5}},
		{false, true, []protocol.Rank{5}},
		{true, false, []protocol.Rank{5}},
		{true, true, []protocol.Rank{5, 0}},
	} {
		m := newRelayed(t).hosts[21].m // its relays are 5 and 2
		m.outbox, m.sent = nil, 0
		m.reporter.to, m.reporter.withdrawn, m.reporter.direct = 0, c.withdrawn, c.direct
		m.sendReport([]report{{21, []suspect{{20, 1, 0}}}})
		var to []protocol.Rank
		for _, s := range m.outbox {
			to = append(to, s.to)
		}
		if !slices.Equal(to, c.to) {
			t.Errorf("withdrawn %t, direct before %t: to %v, want %v", c.withdrawn, c.direct, to, c.to)
		}
	}
}

// The coordinator does not listen to members that it suspects itself, even if a relay passes on
// what they say.
func TestRelayedReportsNameTheirSource(t *testing.T) {
	n := newRelayed(t)
	source := n.hosts[21]
	n.suspect(n.hosts[0], source.self)
	n.suspect(source, n.hosts[20].self)
	n.pump(source)
	told := func() bool {
		return slices.ContainsFunc(n.hosts[0].m.suspicions.reported, func(r reported) bool {
			return r.by == 21 &&
				r.via == 2
		})
	}
	if !n.run(10*time.Millisecond, told) {
		t.Fatal(n.situation())
	}
	if s := n.hosts[0].m.suspected(); s.has(20) || !s.has(21) {
		t.Errorf("suspected: %v", s.each())
	}
}

// However many members report however much, a merged report names two sources of a
// suspicion, and no more suspicions than the limit.
func TestMergedReportsAreBounded(t *testing.T) {
	const size = maxReported + 2
	v := firstView(size)
	self, _ := v.Member(1)
	m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
	if err != nil {
		t.Fatal(err)
	}
	m.now = 1
	var half []suspect
	for r := size / 2; r < size; r++ {
		half = append(half, suspect{protocol.Rank(r), 1, 0})
	}
	for by := protocol.Rank(2); by < 6; by++ {
		m.suspicions.reported = append(m.suspicions.reported, reported{report{by, half}, by, second})
	}
	if got := m.mergedReports(0); len(got) != 2 || len(got[0].suspects)+len(got[1].suspects) != maxReported {
		t.Errorf("%d sources", len(got))
	}
	m.suspicions.own = half[:10] // which are named first
	total := 0
	for _, r := range m.mergedReports(0) {
		total += len(r.suspects)
	}
	if total != maxReported {
		t.Errorf("%d suspicions", total)
	}
}

// Large groups have relays, and small ones have none.
func TestRelaysOfLargeGroups(t *testing.T) {
	for size, relay := range map[int]protocol.Rank{maxDirect: 0, maxDirect + 1: 36} {
		v := firstView(size)
		m, err := New(Config{Self: *v.Members.At(100), View: v, Log: forgetfulLog{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.relayTo(0); got != relay || (Relays(size) != nil) != (relay != 0) {
			t.Errorf("of %d members, rank 100 reports to %d, relays are %v", size, got, Relays(size))
		}
	}
}

// A report that is repeated unchanged is answered: its sender has got no answer yet. One that says
// something new is not, since what follows from it is an answer.
func TestRepeatedReportsAreAnswered(t *testing.T) {
	about := func(by protocol.Rank, ranks ...protocol.Rank) report {
		r := report{by: by}
		for _, rank := range ranks {
			r.suspects = append(r.suspects, suspect{rank, 1, 0})
		}
		return r
	}
	for what, c := range map[string]struct {
		first, second []report
		answered      bool
	}{
		"the same":        {[]report{about(1, 4)}, []report{about(1, 4)}, true},
		"another suspect": {[]report{about(1, 4)}, []report{about(1, 3)}, false},
		"one more":        {[]report{about(1, 4)}, []report{about(1, 3, 4)}, false},
		"another source":  {[]report{about(1, 4)}, []report{about(2, 4)}, false},
		"a source more":   {[]report{about(1, 4)}, []report{about(1, 4), about(2, 4)}, false},
		"withdrawn":       {[]report{about(1, 4)}, nil, false},
		"nothing twice":   {nil, nil, false},
	} {
		a := newAsker(t, nil)
		for round, reports := range [][]report{c.first, c.second} {
			a.receive(t, 1, frame{kind: Report, reports: reports})
			if n := a.sentTo(1, Status); n > 0 != (round == 1 && c.answered) {
				t.Errorf("%s: %d answers to report %d", what, n, round+1)
			}
		}
	}
}

// News that come soon after a report wait for further ones, no longer than the first ones took, and
// news after a long time count as the first.
func TestNewsWaitForFurtherNews(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1) })
	reports := func(by protocol.Rank, about ...suspect) int {
		var list []report
		if len(about) > 0 {
			list = []report{{by, about}}
		}
		a.receive(t, by, frame{kind: Report, reports: list})
		return a.sentTo(0, Report)
	}
	for range 2 {
		if n := reports(2, suspect{4, 1, 0}); n != 1 {
			t.Errorf("%d reports at once", n)
		}
		a.now += 10 * millisecond
		a.run()
		a.now += millisecond
		if n := reports(3, suspect{2, 1, 0}); n != 0 {
			t.Errorf("%d reports of news at once", n)
		}
		if due := a.Deadline(); due != a.now+11*millisecond {
			t.Errorf("news wait for %d ns", due-a.now)
		}
		a.now = a.Deadline()
		if n := a.sentTo(0, Report); n != 1 {
			t.Errorf("%d reports of news", n)
		}
		reports(2)
		reports(3)
		a.step(a.now + second)
		if a.reporter.due != protocol.Never {
			t.Error("it reports what is withdrawn")
		}
		a.step(a.now + 60*second)
	}
}
