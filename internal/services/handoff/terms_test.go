package handoff

import (
	"testing"
)

// group is members whose messages all arrive at once.
type termsGroup struct {
	machines map[Process]*Machine
	list     []Member
	view     uint64
}

func newTermsGroup(view uint64, configs ...Config) *termsGroup {
	g := &termsGroup{machines: make(map[Process]*Machine), view: view}
	for rank, c := range configs {
		p := Process{rank, 1}
		g.machines[p] = New(c)
		g.list = append(g.list, Member{p, string(rune('a' + rank)), 1})
	}
	return g
}

// install has all members install a view, and run until nothing is left to say.
func (g *termsGroup) install(now Time) {
	for p, m := range g.machines {
		m.Install(now, p, g.view, g.list)
	}
	g.talk(now)
}

func (g *termsGroup) talk(now Time) {
	for talking := true; talking; {
		talking = false
		for _, m := range g.machines {
			m.Confirm(now, now, g.view)
			m.Tick(now)
			for _, msg := range m.Take().Send {
				talking = true
				for _, other := range g.machines {
					other.Receive(now, msg)
				}
			}
		}
	}
}

// tokens returns the lowest and the highest token that is held.
func (g *termsGroup) tokens() (lowest, highest uint64, held int) {
	for _, m := range g.machines {
		for p := range m.parts {
			if part := &m.parts[p]; part.state != idle {
				if held == 0 || part.token < lowest {
					lowest = part.token
				}
				highest = max(highest, part.token)
				held++
			}
		}
	}
	return lowest, highest, held
}

// Members that begin take the highest of their floors, and one that joins takes what they have.
// After all were started again, with the view numbers of a new group, tokens are above those before
// (case 66).
func TestTokensRiseOverGroups(t *testing.T) {
	last := uint64(0)
	for round := range uint64(20) {
		c := Config{Partitions: 8, Lease: lease, Handoff: handoff}
		low, high := c, c
		high.Floor = last + 1 // one member knows how far tokens were
		g := newTermsGroup(1, low, high, low)
		g.install(10)
		g.talk(10 + lease)
		lowest, highest, held := g.tokens()
		if held != 8 || lowest <= last {
			t.Fatalf("round %d: %d partitions are held, with tokens from %d on after %d", round, held, lowest, last)
		}
		joiner := c
		joiner.Floor = 1 << 40 // a clock that is ahead counts only where tokens begin
		p := Process{3, 2}
		g.machines[p], g.view = New(joiner), 2
		g.list = append(g.list, Member{p, "d", 1})
		g.install(20 + lease)
		for _, m := range g.machines {
			for _, item := range m.Report().Items {
				m.Drained(21+lease, item)
			}
		}
		g.talk(22 + lease)
		if _, now, _ := g.tokens(); now != highest+1 || g.machines[p].terms.Base != g.machines[Process{0, 1}].terms.Base {
			t.Fatalf("round %d: token %d in the second view, after %d", round, now, highest)
		}
		_, last, _ = g.tokens()
	}
}

// Members with other settings are named, with both values, and nothing begins (case 77).
func TestSettingsThatDiffer(t *testing.T) {
	c := Config{Partitions: 16, Lease: lease, Handoff: handoff}
	for name, change := range map[string]func(*Config){
		"Partitions":     func(c *Config) { c.Partitions = 64 },
		"Lease":          func(c *Config) { c.Lease = lease / 2 },
		"HandoffTimeout": func(c *Config) { c.Handoff = 7 },
	} {
		other := c
		change(&other)
		g := newTermsGroup(1, c, other)
		g.install(10)
		g.talk(10 + 3*lease)
		if _, _, held := g.tokens(); held > 0 {
			t.Errorf("%s: %d partitions are held", name, held)
		}
		a, b := g.machines[Process{0, 1}], g.machines[Process{1, 1}]
		ca, ok := a.Conflict()
		cb, too := b.Conflict()
		if !ok || !too || ca.Setting != name || ca.With != b.self || cb.With != a.self || ca.Own != cb.Other ||
			ca.Other != cb.Own || ca.Own == ca.Other {
			t.Errorf("%s: %+v %v, %+v %v", name, ca, ok, cb, too)
		}
		g.machines[b.self] = New(c) // it is started again with the right settings
		g.install(20 + 3*lease)
		g.machines[b.self].Install(20+3*lease, b.self, 1, g.list)
		g.talk(20 + 5*lease)
		if _, _, held := g.tokens(); held != 16 {
			t.Errorf("%s: %d partitions are held after that", name, held)
		}
	}
}

// Members whose weights differ have other maps. Weights are compared in each view.
func TestWeightsThatDiffer(t *testing.T) {
	c := Config{Partitions: 16, Lease: lease, Handoff: handoff}
	a, b := New(c), New(c)
	pa, pb := Process{0, 1}, Process{1, 1}
	even := []Member{{pa, "a", 1}, {pb, "b", 1}}
	odd := []Member{{pa, "a", 1}, {pb, "b", 3}}
	for view, list := range [][]Member{even, odd, even} {
		view++
		now := Time(view) * 4 * lease
		a.Install(now, pa, uint64(view), even)
		b.Install(now, pb, uint64(view), list)
		g := termsGroup{machines: map[Process]*Machine{pa: a, pb: b}, view: uint64(view)}
		g.talk(now)
		for _, p := range a.AskTerms() {
			a.Receive(now, g.machines[p].Terms())
		}
		for _, p := range b.AskTerms() {
			b.Receive(now, g.machines[p].Terms())
		}
		_, differs := a.Conflict()
		_, too := b.Conflict()
		if want := view == 2; differs != want || too != want {
			t.Errorf("view %d: weights differ: %v, %v", view, differs, too)
		}
	}
}

// A member of a build without terms reports, and has no handler for terms: tokens are view numbers
// then, as they are for it. A member that takes no part does not count.
func TestMembersWithoutTerms(t *testing.T) {
	for name, reports := range map[string]bool{"an old build": true, "takes no part": false} {
		m := New(Config{Partitions: 4, Lease: lease, Handoff: handoff, Floor: 1000})
		m.Install(1, me, 5, []Member{{me, "a", 1}, {other, "b", 0}})
		m.AskTerms()
		if reports {
			m.Receive(2, Message{Kind: Report, View: 5, From: other})
			m.Absent(other)
			if m.terms.of[other] != nil {
				t.Error("a member is taken for an old build that was asked before it took part")
			}
			m.AskTerms()
		}
		m.Absent(other)
		m.Confirm(3, 3, 5)
		m.Tick(3)
		m.Confirm(3+2*lease, 3+2*lease, 5)
		m.Tick(3 + 2*lease)
		token, serves := m.Serves(3+2*lease, 0)
		if want := map[bool]uint64{true: 5, false: 1005}[reports]; !serves || token != want {
			t.Errorf("%s: token %d, %v, want %d", name, token, serves, want)
		}
	}
}

func TestTermsAreEncoded(t *testing.T) {
	msg := Message{Kind: TermsOf, View: 7, From: Process{3, 2}, Terms: Terms{Settings{16, 1000, 50, 9}, 77, 78}}
	got, err := Decode(3, 1, msg.Encode())
	if err != nil || got.Terms != msg.Terms || got.View != 7 || got.From != msg.From {
		t.Errorf("%+v, %v", got, err)
	}
	msg.Terms.Floor = MaxFloor + 1
	if _, err := Decode(3, 1, msg.Encode()); err == nil {
		t.Error("a floor that overflows is taken")
	}
	for n := range msg.Encode() {
		if _, err := Decode(3, 1, msg.Encode()[:n]); err == nil {
			t.Errorf("%d bytes are taken", n)
		}
	}
}
