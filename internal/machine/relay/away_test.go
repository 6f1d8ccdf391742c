package relay

import (
	"fmt"
	"testing"
)

// burst has a member broadcast what its log has no room for.
func (m *model) burst(id string, n int, sent map[string]int) {
	for range n {
		m.broadcast(m.findID(id), sent)
	}
}

// What another zone lacks stays in the log, beside as much as that may have, until all zones
// have it.
func TestLogKeepsWhatZonesLack(t *testing.T) {
	const n, keep = 100, 20 * entryOverhead
	m := newModel(t, 3, 3, 1, keep)
	sent := map[string]int{}
	m.burst("a1", n, sent)
	m.burst("b1", n, sent)
	m.limit += 60 * modelStall
	for quiet := false; !quiet; quiet = !m.step() {
		continue
	}
	m.check("burst", sent)
	for _, p := range m.alive("") {
		if p.keptBytes > keep || p.oldBytes > 0 || p.kept.Len() > 20 {
			t.Errorf("%s keeps %d bytes, %d of them for zones that have everything, in %d records", p.self.ID, p.keptBytes,
				p.oldBytes, p.kept.Len())
		}
	}
}

// A zone that is cut off is waited for: it gets more than others keep, although the lead that
// has seen it go dies meanwhile, and its successors have joined after that. It is not waited
// for any longer than for the time that is set.
func TestZoneThatIsAwayIsWaitedFor(t *testing.T) {
	const n = 100
	for _, patience := range []Time{0, 200 * modelStall} {
		for seed := range uint64(10) {
			m := newModel(t, 3, 3, seed, 20*entryOverhead)
			for _, p := range m.members {
				p.config.Patience = patience
			}
			sent := map[string]int{}
			m.burst("a1", 1, sent)
			m.run()
			m.cutZone("c", true)
			m.drainViews()
			m.burst("a1", n, sent)
			m.limit += 20 * modelStall
			m.run()
			m.kill(m.findID("a0"))
			m.run()
			if m.findID("a1").Window(n*entryOverhead/2) == (patience > 0) {
				t.Errorf("patience %d, seed %d: the window of an origin is wrong", patience, seed)
			}
			m.cutZone("c", false)
			m.limit += 60 * modelStall
			m.run()
			if patience > 0 {
				m.check(fmt.Sprint("seed ", seed), sent)
				continue
			}
			for _, p := range m.alive("c") {
				if len(p.got) > n {
					t.Errorf("seed %d: %s has got all %d, although nobody has waited for it", seed, p.self.ID, len(p.got))
				}
			}
		}
	}
}

// Members that join wait for zones that are away, and get what those lack. They do not wait for
// those that are given up.
func TestJoinerKeepsWhatZonesLack(t *testing.T) {
	const n = 100
	c := Config{
		Self: Origin{"a", "old", 1}, KeepBytes: 10 * entryOverhead, MaxOrigins: 10, Window: 1 << 20,
		Stall: modelStall, Patience: 100, WatermarkDelay: 10,
	}
	old := New(c)
	old.Begin(1)
	old.SetZone(1, []Sibling{{0, 0}}, 0)
	old.covered["b"] = true
	old.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	old.SetBackbone(2, []Peer{{Rank: 0, Zone: "a"}})
	for range n {
		old.Broadcast(3, "", nil)
	}
	c.Self.ID = "new"
	joiner := New(c)
	table := tableFor(t, old, joiner)
	if err := joiner.Join(5, table); err != nil {
		t.Fatal(err)
	}
	joiner.SetBackbone(6, []Peer{{Rank: 0, Zone: "a"}})
	if s := joiner.streams[old.self]; s.log.Len() != n || len(joiner.away) != 1 {
		t.Errorf("a joiner has %d of %d messages, and waits for %v", s.log.Len(), n, joiner.away)
	}
	old.Tick(200)
	if old.streams[old.self].acked != n || len(old.away) > 0 {
		t.Errorf("%d of %d messages are acknowledged, and %v waited for", old.streams[old.self].acked, n, old.away)
	}
	c.Self.ID = "late"
	late := New(c)
	if err := late.Join(201, tableFor(t, old, late)); err != nil {
		t.Fatal(err)
	}
	late.SetBackbone(202, []Peer{{Rank: 0, Zone: "a"}})
	if len(late.away) > 0 {
		t.Errorf("a joiner waits for %v, which is given up", late.away)
	}
}

// As long as the leads get on, no other delegate ships: it learns from watermarks what all zones
// have.
func TestOnlyTheLeadShips(t *testing.T) {
	const n = 50
	m := newModel(t, 3, 3, 1, 20*entryOverhead)
	sent := map[string]int{}
	for range 4 {
		m.burst("a1", n, sent)
		m.burst("b2", n, sent)
		m.limit += 20 * modelStall
		for quiet := false; !quiet; quiet = !m.step() {
			continue
		}
	}
	m.check("bursts", sent)
	for _, p := range m.alive("") {
		if lead := p.index == 0; p.active != lead || !lead && p.Counts().Data > 0 {
			t.Errorf("%s ships: %t, and has shipped %d", p.self.ID, p.active, p.Counts().Data)
		}
		clear(p.covered) // as if it had just begun to lead
		p.cover()
		if p.index == 0 && len(p.covered) != 2 {
			t.Errorf("%s knows that %v have everything", p.self.ID, p.covered)
		}
		if p.behind() {
			t.Errorf("%s does not know that all zones have everything", p.self.ID)
		}
	}
}

// A lead that has fetched what it missed ships it at once, and asks on at once if more is missing.
func TestFetchedIsShipped(t *testing.T) {
	m := newModel(t, 2, 3, 1, 1<<20)
	lead, origin := m.findID("a0"), m.findID("a1")
	var frames [][]byte
	for range 3 {
		m.now += 1
		frames = append(frames, origin.Broadcast(m.now, "", []byte("data")))
	}
	origin.Actions()
	lead.Actions()
	if err := lead.FromZone(m.now, origin.rank, frames[2]); err != nil {
		t.Fatal(err)
	}
	lead.Actions()
	before := lead.Counts().Data
	m.now += 1000
	lead.Tick(m.now)
	asked := 0
	for _, a := range lead.Actions() {
		if _, ok := a.(Fetch); ok {
			asked++
		}
	}
	if asked == 0 {
		t.Fatal("the lead does not ask for what is missing")
	}
	if err := lead.Fetched(m.now, frames[0]); err != nil || lead.Counts().Data != before+1 {
		t.Errorf("it has shipped %d, %v", lead.Counts().Data-before, err)
	}
	again := 0
	for _, a := range lead.Actions() {
		if _, ok := a.(Fetch); ok {
			again++
		}
	}
	if again != 1 {
		t.Errorf("it asks on %d times", again)
	}
	if err := lead.Fetched(m.now, frames[1]); err != nil || lead.Counts().Data != before+3 {
		t.Errorf("it has shipped %d, %v", lead.Counts().Data-before, err)
	}
}
