package relay

import (
	"slices"
	"testing"
)

// Zones know of each other what their leads have told: at once at first, a second after the last
// time if something has changed, and every five seconds.
func TestSummaries(t *testing.T) {
	m := newModel(t, 3, 2, 1, 1<<20)
	tell := func(zone string, members int) {
		for _, p := range m.alive(zone) {
			m.do(p, func() { p.SetSummary(m.now, Summary{Zone: zone, Members: members, View: 7, Healthy: members > 2}) })
		}
	}
	until := func(limit Time) {
		m.limit = limit
		for quiet := false; !quiet; quiet = !m.step() {
			continue
		}
		m.now = max(m.now, limit)
	}
	known := func(zone string) (members []int) { // 0: nothing is known
		for _, p := range m.alive("") {
			s := p.summaries[zone]
			if s.View > 0 && (s.View != 7 || s.Healthy != (s.Members > 2)) {
				t.Errorf("%s knows %+v", p.self.ID, s)
			}
			members = append(members, s.Members)
		}
		slices.Sort(members)
		return slices.Compact(members)
	}
	count := func() (n uint64) {
		for _, p := range m.alive("") {
			n += p.Counts().Summaries
		}
		return n
	}
	for _, zone := range []string{"a", "b", "c"} {
		tell(zone, 2)
	}
	first := m.now
	until(first + minSummary/2)
	if !slices.Equal(known("b"), []int{0, 2}) || count() < 6 {
		t.Fatalf("zone b has 2 members, leads know %v after %d summaries", known("b"), count())
	}
	until(first + 2*minSummary)
	if !slices.Equal(known("b"), []int{2}) {
		t.Errorf("zone b has 2 members, others know %v", known("b"))
	}
	before := count()
	changed := m.now
	tell("b", 3)
	tell("b", 3) // nothing new
	until(changed + minSummary/2)
	if !slices.Equal(known("b"), []int{3}) {
		t.Errorf("zone b has 3 members, others know %v", known("b"))
	}
	tell("b", 4)
	until(changed + minSummary*3/4)
	if count() > before+6 {
		t.Errorf("%d summaries of a change, want 6 at most", count()-before)
	}
	until(changed + minSummary*5/2)
	if !slices.Equal(known("b"), []int{4}) || count() > before+12 {
		t.Errorf("zone b has 4 members, others know %v after %d summaries more", known("b"), count()-before)
	}
	quiet, before := m.now, count()
	until(quiet + 4*maxSummary)
	if n := count() - before; n < 3*6 || n > 5*6 {
		t.Errorf("%d summaries in %d s without a change", n, 4*maxSummary/1e9)
	}
	for _, p := range m.alive("") {
		for _, s := range p.Summaries() {
			if s.Zone != p.zone && m.now-s.Heard > 2*maxSummary {
				t.Errorf("%s has heard of %s at %d, and it is %d", p.self.ID, s.Zone, s.Heard, m.now)
			}
		}
	}
}

// A summary that is due leaves when the machine is called at its deadline.
func TestSummaryLeavesAtItsDeadline(t *testing.T) {
	m := lead(t)
	m.SetSummary(2, Summary{Zone: "a", Members: 1})
	m.Actions()
	m.SetSummary(3, Summary{Zone: "a", Members: 2})
	m.Tick(2 + minSummary - 1)
	if early, _ := sends(t, m, kindSummary); len(early) > 0 {
		t.Error("a summary leaves too early")
	}
	m.Tick(2 + minSummary)
	if list, _ := sends(t, m, kindSummary); len(list) != 1 || list[0].summaries[0].Members != 2 {
		t.Errorf("%d summaries leave", len(list))
	}
}
