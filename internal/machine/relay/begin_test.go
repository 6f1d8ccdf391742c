package relay

import (
	"fmt"
	"slices"
	"testing"
)

// toldOf starts the first member of zone "a", which is told of other zones.
func toldOf(zones ...string) *Machine {
	m := New(Config{
		Self: Origin{"a", "self", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
		Patience: 100 * modelStall, WatermarkDelay: 10, Zones: zones,
	})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}}, 0)
	m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}})
	return m
}

// A zone that begins waits for those that it is told of, and for those that the first one it
// meets waits for, so that they get its first messages when they come.
func TestZoneThatBeginsWaitsForOthers(t *testing.T) {
	m := toldOf("a", "b")
	m.Broadcast(2, "", []byte("first"))
	if m.Window(1) {
		t.Error("the window does not wait for a zone that the first member is told of")
	}
	if links := m.Links(); len(links) != 1 || links[0].Zone != "b" || links[0].Connected || links[0].Lag != 1 {
		t.Errorf("people see %+v, not whom it waits for", links)
	}
	m.SetBackbone(3, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	m.Actions()
	fromPeer(t, m, 3, 1, &frame{kind: kindWatermark, zone: "b", zones: []string{"a", "b", "c"}})
	fromPeer(t, m, 3, 1, &frame{kind: kindReply, zone: "b", zones: []string{"b", "c"}, covers: []string{"a"}})
	if bases, _ := sends(t, m, kindBase); len(bases) != 1 || bases[0].positions[0].Seq != 0 {
		t.Fatalf("a zone that was waited for begins at %v", bases)
	}
	fromPeer(t, m, 4, 1, &frame{kind: kindAck, zone: "b", positions: []position{{Origin: m.self, Seq: 1}}})
	if m.Window(1) {
		t.Error("the window does not wait for a zone that another one waits for")
	}
	m.SetBackbone(5, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}, {Rank: 2, Zone: "c"}})
	m.Actions()
	fromPeer(t, m, 5, 2, &frame{kind: kindReply, zone: "c", zones: []string{"a", "b", "c"}, covers: []string{"a"}})
	if data, to := sends(t, m, kindData); len(data) != 1 || to[0] != 2 {
		t.Fatalf("%d messages are shipped to the zone that was away", len(data))
	}
	fromPeer(t, m, 6, 2, &frame{kind: kindAck, zone: "c", positions: []position{{Origin: m.self, Seq: 1}}})
	if !m.Window(1) {
		t.Error("the window waits although all zones have everything")
	}
}

// A zone that begins does not wait for longer than others do, nor for what another zone names
// after messages were acknowledged which that may lack.
func TestZoneThatBeginsGoesOn(t *testing.T) {
	m := toldOf("b")
	m.Broadcast(2, "", []byte("first"))
	ticks := 0
	for now := m.Deadline(); now >= 0 && now <= 101*modelStall; now = m.Deadline() {
		m.Tick(now)
		ticks++
	}
	if !m.Window(1) || ticks > 10 {
		t.Fatalf("after %d calls, the window waits for a zone that is to be given up: %t", ticks, !m.Window(1))
	}
	m.SetBackbone(102*modelStall, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	fromPeer(t, m, 102*modelStall, 1, &frame{kind: kindWatermark, zone: "b", zones: []string{"c"}})
	if m.covered["c"] || len(m.away) > 0 {
		t.Errorf("it waits for %v, which may lack what is acknowledged", m.away)
	}
}

// A gateway tells a lead that asks for positions which zones its own waits for, and one that
// only measures nothing.
func TestGatewayTellsWhomItsZoneWaitsFor(t *testing.T) {
	m := toldOf("b", "c")
	m.SetBackbone(3, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	m.Actions()
	fromPeer(t, m, 3, 1, &frame{kind: kindSync, zone: "b"})
	fromPeer(t, m, 3, 1, &frame{kind: kindSync, zone: "b", covers: []string{"b"}})
	if told, _ := sends(t, m, kindWatermark); len(told) != 1 || !slices.Equal(told[0].zones, []string{"b", "c"}) {
		t.Errorf("it tells %v", told)
	}
}

// A gateway that is not the lead is the only member of its zone that knows of a message which
// waits for a lost one before it. If nobody has that, it tells its zone after a while, and goes on.
func TestGatewayGivesUpWhatNobodyHas(t *testing.T) {
	m := New(Config{
		Self: Origin{"a", "self", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
		GapDelay: 10, AckDelay: 10, WatermarkDelay: 10,
	})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}, {1, 1}}, 1)
	m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "a", Age: 1}, {Rank: 2, Zone: "b"}})
	m.based["c"] = true // and gone
	dead := Origin{"c", "x", 1}
	fromPeer(t, m, 2, 2, &frame{kind: kindLost, origin: dead, seq: 1})
	fromPeer(t, m, 2, 2, &frame{kind: kindData, origin: dead, seq: 2, data: []byte("d")})
	m.Tick(giveUpAfter*modelStall + 1)
	if len(m.Delivered()) > 0 {
		t.Fatal("a message is given up too early")
	}
	m.Tick(giveUpAfter*modelStall + 20)
	if got := m.Delivered(); len(got) != 2 || got[0].Lost != 1 || got[1].Seq != 2 {
		t.Errorf("delivered %v", got)
	}
	casts := 0
	for _, a := range m.Actions() {
		if c, ok := a.(Cast); ok && (kindOf(c.Frame) == kindLost || kindOf(c.Frame) == kindData) {
			casts++
		}
	}
	if casts != 2 {
		t.Errorf("%d frames are broadcast in the zone, not the notice and the message", casts)
	}
}

// The other delegates learn from the lead which zones are waited for, also if it has nothing else
// to tell, and wait for them, too: otherwise they would ship, and tell the lead that those zones
// lack nothing.
func TestDelegatesWaitForWhomTheLeadWaitsFor(t *testing.T) {
	lead := toldOf("b")
	lead.SetBackbone(3, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	lead.Tick(20)
	lead.Actions()
	fromPeer(t, lead, 40, 1, &frame{kind: kindWatermark, zone: "b", zones: []string{"c"}})
	var told []byte
	for _, a := range lead.Actions() {
		if c, ok := a.(Cast); ok && kindOf(c.Frame) == kindWatermark {
			told = c.Frame
		}
	}
	if told == nil {
		t.Fatal("the lead does not tell that it waits for another zone")
	}
	second := New(Config{
		Self: Origin{"a", "second", 2}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20,
		Stall: modelStall, Patience: 100 * modelStall, WatermarkDelay: 10,
	})
	second.Begin(1)
	second.SetZone(1, []Sibling{{0, 0}, {1, 1}}, 1)
	second.SetBackbone(3, []Peer{{Rank: 0, Zone: "a"}, {Rank: 2, Zone: "a", Age: 1}, {Rank: 1, Zone: "b"}})
	second.Broadcast(4, "", []byte("x"))
	if err := second.FromZone(41, 0, told); err != nil {
		t.Fatal(err)
	}
	second.Tick(10 * modelStall)
	if second.Lead() || len(second.away) != 1 {
		t.Errorf("the second delegate ships: %t, and waits for %v", second.Lead(), second.away)
	}
}

// A zone that is new has what a delegate says it begins with only when it has said so: it may have
// taken the base of another delegate, which is an earlier one. Then it gets what is between them.
func TestZoneHasItsBaseWhenItSaysSo(t *testing.T) {
	m := toldOf()
	m.SetBackbone(2, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	m.Broadcast(2, "", []byte("first"))
	m.Broadcast(2, "", []byte("second"))
	m.Actions()
	fromPeer(t, m, 3, 1, &frame{kind: kindReply, zone: "b", zones: []string{"b"}, covers: []string{"a"}})
	if bases, _ := sends(t, m, kindBase); len(bases) != 1 || bases[0].positions[0].Seq != 2 || m.Window(1) {
		t.Fatalf("the base is %v, and the window open: %t", bases, m.Window(1))
	}
	fromPeer(t, m, 4, 1, &frame{kind: kindAck, zone: "b", positions: []position{{Origin: m.self, Seq: 1}}})
	m.Tick(4 + modelStall)
	m.Actions()
	fromPeer(t, m, 5+modelStall, 1, &frame{
		kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"},
		positions: []position{{Origin: m.self, Seq: 1}},
	})
	if data, _ := sends(t, m, kindData); len(data) != 1 || data[0].seq != 2 {
		t.Errorf("%d messages are shipped to a zone that lacks one", len(data))
	}
}

// A gateway acknowledges a base at once, also one that it does not take.
func TestBaseIsAcknowledged(t *testing.T) {
	m := toldOf()
	m.SetBackbone(2, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}, {Rank: 2, Zone: "b", Age: 1}})
	o := Origin{"b", "x", 1}
	for i, seq := range []uint64{3, 5} {
		m.Actions()
		fromPeer(t, m, 3, i+1, &frame{kind: kindBase, zone: "b", positions: []position{{Origin: o, Seq: seq}}})
		m.Stable(4, true)
		if acks, to := sends(t, m, kindAck); len(acks) != 1 || to[0] != i+1 || acks[0].positions[0].Seq != 3 {
			t.Errorf("base %d: %v to %v", seq, acks, to)
		}
	}
}

// The zones that others name are bounded.
func TestFewZonesAreAwaited(t *testing.T) {
	m := toldOf()
	m.SetBackbone(2, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	named := &frame{kind: kindWatermark, zone: "b"}
	for i := range 2 * maxAwaited {
		named.zones = append(named.zones, fmt.Sprint("zone ", i))
	}
	fromPeer(t, m, 3, 1, named)
	if len(m.covered) != maxAwaited {
		t.Errorf("%d zones are waited for, of at most %d", len(m.covered), maxAwaited)
	}
}

// A zone that was waited for does not begin behind what this member has, although all others have
// more: this member ships what it gets.
func TestBaseIsNotBeyondTheLog(t *testing.T) {
	m := toldOf("b")
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 2)
	m.streams[x].acked = 5 // says the last lead
	m.SetBackbone(3, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	m.Actions()
	fromPeer(t, m, 3, 1, &frame{kind: kindReply, zone: "b", zones: []string{"b"}, covers: []string{"a"}})
	if bases, _ := sends(t, m, kindBase); len(bases) != 1 || bases[0].positions[0].Seq != 2 {
		t.Errorf("a zone begins at %v, and the log has 2", bases)
	}
}
