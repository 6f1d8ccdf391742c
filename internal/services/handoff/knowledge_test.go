package handoff

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// What a process believes of others, message by message. Partition 0 is looked at.

var (
	me     = Process{0, 1}
	other  = Process{1, 1}
	third  = Process{2, 1}
	absent = Process{3, 1}
)

// believer returns a process in view 5 with two others, of which none has reported.
func believer() *Machine {
	m := New(Config{Partitions: 4, Lease: lease, Handoff: handoff})
	m.Install(1000, me, 5, []Member{{me, "a", 1}, {other, "b", 1}, {third, "c", 1}})
	agreeing(m)
	m.Take()
	return m
}

// agreeing gives a process terms of all members of its view that are like its own.
func agreeing(m *Machine) {
	m.terms.Base = 1
	for p := range m.in {
		m.Receive(0, Message{Kind: TermsOf, View: m.view, From: p, Terms: m.terms.Terms})
	}
}

// owner returns which process m believes to own partition 0, with a token; none is absent.
func owner(m *Machine) (Process, uint64) {
	if p, token, ok := m.Owner(0); ok {
		return p, token
	}
	return Process{Rank: nobody}, 0
}

// Reports count if they are of this view and of its members, and say all that their senders hold.
func TestReportsThatCount(t *testing.T) {
	m := believer()
	held := []Item{{0, 5}}
	for _, msg := range []Message{
		{Kind: Report, View: 4, From: other, Items: held},
		{Kind: Report, View: 5, From: absent, Items: held},
		{Kind: Report, View: 5, From: Process{1, 2}, Items: held},
		{Kind: Report, View: 5, From: me, Items: held},
	} {
		m.Receive(1001, msg)
		if p, _ := owner(m); p.Rank != nobody || len(m.Missing()) != 2 || m.missing != 2 {
			t.Errorf("%+v: %v owns it, %v are missing", msg, p, m.Missing())
		}
	}
	m.Receive(1001, Message{Kind: Report, View: 5, From: other, Items: held})
	m.Receive(1001, Message{Kind: Report, View: 5, From: other, Items: held})
	if p, token := owner(m); p != other || token != 5 || !slices.Equal(m.Missing(), []Process{third}) || m.missing != 1 {
		t.Errorf("%v owns it with %d, %v are missing", p, token, m.Missing())
	}
	m.Receive(1002, Message{Kind: Report, View: 5, From: other, Items: nil})
	if p, _ := owner(m); p.Rank != nobody {
		t.Errorf("%v owns what it does not report", p)
	}
}

// A later token is believed, an earlier one is not, whatever the order of messages. A release is
// not taken back by the news of the beginning that it ends.
func TestLaterTokensAreBelieved(t *testing.T) {
	m := believer()
	for i, step := range []struct {
		msg   Message
		owner Process
		token uint64
	}{
		{Message{Kind: Begun, View: 4, From: other, Items: []Item{{0, 4}}}, other, 4},
		{Message{Kind: Begun, View: 5, From: third, Items: []Item{{0, 5}}}, third, 5},
		{Message{Kind: Begun, View: 4, From: other, Items: []Item{{0, 4}}}, third, 5},
		{Message{Kind: Released, View: 5, From: other, Items: []Item{{0, 4}}}, third, 5},
		{Message{Kind: Begun, View: 5, From: absent, Items: []Item{{0, 6}}}, third, 5},
		{Message{Kind: Released, View: 5, From: third, Items: []Item{{0, 5}}}, Process{Rank: nobody}, 0},
		{Message{Kind: Begun, View: 5, From: third, Items: []Item{{0, 5}}}, Process{Rank: nobody}, 0},
		{Message{Kind: Begun, View: 5, From: other, Items: []Item{{0, 6}}}, other, 6},
	} {
		m.Receive(1001, step.msg)
		if p, token := owner(m); p != step.owner || token != step.token {
			t.Errorf("step %d: %v owns it with %d, want %v with %d", i, p, token, step.owner, step.token)
		}
	}
	if p, _, ok := m.Owner(3); ok {
		t.Errorf("%v owns what nobody has begun", p)
	}
}

// A release lets this process begin at once if no other can have begun since: it is of this view,
// or of the one before, in which the map named this process or the one that has released.
func TestReleasesThatExclude(t *testing.T) {
	for name, c := range map[string]struct {
		view   uint64
		before Process
		atOnce bool
	}{
		"of this view":                       {5, third, true},
		"of the one before, for this one":    {4, me, true},
		"of the one before, for its owner":   {4, other, true},
		"of the one before, for a third":     {4, third, false},
		"of an earlier one, for this one":    {3, me, false},
		"of an earlier one, for its owner":   {3, other, false},
		"of an earlier one, and for a third": {3, third, false},
	} {
		m := believer()
		part := &m.parts[0]
		part.target, part.before, part.held = me, c.before, 3
		m.Receive(1001, Message{Kind: Released, View: c.view, From: other, Items: []Item{{0, 3}}})
		m.Confirm(1001, 1001, 5)
		m.Tick(1001)
		if _, begun := m.Serves(1001, 0); begun != c.atOnce {
			t.Errorf("%s: begun at once: %v", name, begun)
		}
		if p, _ := owner(m); !c.atOnce && p.Rank != nobody {
			t.Errorf("%s: %v owns it", name, p)
		}
	}
}

// What a process holds ends with a view that does not follow its last one, or that has it as
// another process; and what it knew of others is void.
func TestViewsThatDoNotFollow(t *testing.T) {
	for name, c := range map[string]struct {
		self    Process
		view    uint64
		follows bool
	}{
		"the next view":    {Process{0, 1}, 2, true},
		"one was missed":   {Process{0, 1}, 3, false},
		"as another":       {Process{0, 2}, 2, false},
		"another, missed":  {Process{0, 3}, 3, false},
		"the same, anew":   {Process{0, 1}, 1, true},
		"another, at once": {Process{0, 2}, 1, false},
	} {
		m, _, _ := one(t)
		now := 1000 + lease
		m.Install(now, c.self, c.view, []Member{{c.self, "a", 1}})
		out := m.Take()
		if stopped := len(out.Stop); stopped != 0 && stopped != 4 || (stopped == 0) != c.follows || m.Holds() != 4-stopped {
			t.Errorf("%s: %d stopped, %d held", name, stopped, m.Holds())
		}
		if c.follows {
			continue
		}
		m.Confirm(now, now, c.view)
		m.Tick(now + lease - 1)
		if m.Holds() > 0 {
			t.Errorf("%s: it begins again within a lease", name)
		}
	}
	m := believer()
	m.parts[0] = partition{target: me, before: me, holder: other, held: 3, released: true}
	m.Install(2000, me, 7, []Member{{me, "a", 1}})
	m.Confirm(2000, 2000, 7)
	m.Tick(2000)
	if m.Holds() > 0 {
		t.Error("a release of before a view that was missed counts")
	}
}

// A release counts in the next view unless the map of this one named a third process, which may
// have begun.
func TestReleasesInTheNextView(t *testing.T) {
	for named, atOnce := range map[Process]bool{me: true, other: true, third: false} {
		m := believer()
		m.parts[0] = partition{target: named, holder: other, held: 3, released: true}
		m.Install(2000, me, 6, []Member{{me, "a", 1}, {other, "b", 0}, {third, "c", 0}})
		agreeing(m)
		m.Confirm(2000, 2000, 6)
		m.Tick(2000)
		if _, begun := m.Serves(2000, 0); begun != atOnce {
			t.Errorf("the map named %v: begun at once: %v", named, begun)
		}
	}
}

// A partition that moves is drained while the lease holds, and stopped when it does not.
func TestMovesAtTheEndOfALease(t *testing.T) {
	end := 1000 + lease + lease/5*4
	for now, stops := range map[Time]bool{end - 1: false, end: true} {
		m, self, _ := one(t)
		m.Install(now, self, 2, []Member{{self, "a", 0}, {other, "b", 1}})
		out := m.Take()
		if stopped, drained := len(out.Stop), len(out.Drain); stops && (stopped != 4 || drained != 0) || !stops &&
			(stopped != 0 || drained != 4) {
			t.Errorf("at %d: %d stopped, %d drained", now, stopped, drained)
		}
	}
	m := New(Config{Partitions: 4, Lease: lease, Handoff: handoff})
	m.Install(1000, me, 1, []Member{{me, "a", 1}})
	m.Confirm(1000, 1000+lease/5, 1) // until the moment at which it could begin
	m.Tick(1000 + lease)
	if m.Holds() > 0 {
		t.Error("it begins when its lease ends")
	}
}

// A release is told until a quarter of a lease after its deadline, to the moment, and with what is
// released at the same time, not with what begins.
func TestReleasesAreTold(t *testing.T) {
	for late, told := range map[Time]bool{lease / 4: true, lease/4 + 1: false} {
		m, _, _ := one(t)
		now := 1000 + lease
		m.Leave(now)
		drains := m.Take().Drain
		m.send(Begun, nil) // something else is on its way
		for _, item := range drains {
			m.Drained(now+handoff+late, item)
		}
		out := m.Take().Send
		if !told && len(out) != 1 || told && (len(out) != 2 || out[1].Kind != Released || len(out[1].Items) != 4) {
			t.Errorf("%d late: %+v", late, out)
		}
	}
}

// A process that has just started has not slept.
func TestFreshProcessVouches(t *testing.T) {
	m := New(Config{Partitions: 4, Lease: lease, Handoff: handoff})
	m.Install(10*lease, me, 1, []Member{{me, "a", 1}})
	for range 2 {
		if !m.Vouches(10*lease, 1) {
			t.Error("it does not vouch for its first view")
		}
		m.Tick(10 * lease)
	}
	if next := m.Next(); next != protocol.Never {
		t.Errorf("it has to do something at %d, without a lease", next)
	}
}
