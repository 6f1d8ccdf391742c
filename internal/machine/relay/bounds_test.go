package relay

import "testing"

// Bounds and cases at the edge of what a machine is told.

// Of an origin that is only heard of, and whose messages begin elsewhere, a member says nothing.
func TestOriginThatIsOnlyHeardOf(t *testing.T) {
	m := lead(t)
	x := Origin{"away", "x", 1}
	m.giveUp(2, m.stream(2, x), 5, 10)
	if len(m.gaps) > 0 {
		t.Error("messages are missing of an origin that has not begun here")
	}
	if p := m.positions([]string{"away"}); len(p) > 0 {
		t.Errorf("another zone is told %v", p)
	}
	m.Actions()
	for now := Time(3); now < 100; now++ {
		m.Tick(now)
	}
	for _, a := range m.Actions() {
		c, ok := a.(Cast)
		if !ok || kindOf(c.Frame) != kindWatermark {
			continue
		}
		frames, err := splitFrames(c.Frame)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range frames[0].positions {
			if p.Origin == x {
				t.Errorf("the zone is told %v", p)
			}
		}
	}
}

// What is forwarded and is no message changes nothing.
func TestOnlyMessagesAreForwarded(t *testing.T) {
	m := lead(t)
	known := len(m.streams)
	if err := m.Forwarded(2, 5, (&frame{kind: kindWatermark, zone: "a"}).encode()); err != nil || len(m.streams) != known {
		t.Errorf("%v, %d origins", err, len(m.streams))
	}
}

// The delegate that led last leads on as long as the zone has it, and otherwise the oldest does. A
// zone without delegates has nobody else.
func TestLeadOfAZoneStays(t *testing.T) {
	m := lead(t)
	m.leader = 2
	for _, c := range []struct {
		delegates []Sibling
		want      int
	}{{[]Sibling{{1, 1}, {2, 2}}, 2}, {nil, 2}, {[]Sibling{{3, 3}, {4, 4}}, 3}} {
		m.SetZone(2, c.delegates, 0)
		if m.leader != c.want {
			t.Errorf("of %v, %d leads", c.delegates, m.leader)
		}
	}
}

// A lead does not yield to its own watermark, which its zone gives back to it.
func TestLeadHearsItself(t *testing.T) {
	m := lead(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 3)
	if err := m.FromZone(3, 0,
		(&frame{kind: kindWatermark, zone: "a", positions: []position{{Origin: x, Seq: 3, Acked: 2}}}).encode()); err !=
		nil || !m.active {
		t.Errorf("%v, it leads: %t", err, m.active)
	}
}

// Without other zones, a message has reached all of them at once.
func TestOneZoneWaitsForNobody(t *testing.T) {
	m := toldOf()
	m.config.AckBytes = 1 << 15 // so that a watermark does not come each time
	for range 3 {
		m.Broadcast(2, "", []byte("message"))
		if !m.Window(1) {
			t.Error("the window waits for nobody")
		}
	}
}

// Messages that wait for earlier ones are bounded; what has no room is missing, and fetched later.
func TestHeldMessagesAreBounded(t *testing.T) {
	m := New(Config{Self: Origin{"a", "self", 1}, KeepBytes: 200, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall})
	m.Begin(1)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 2, 50)
	if err := m.journal.invariant(); err != nil || m.gaps[x] == nil || m.heldBytes == 0 {
		t.Errorf("%v; %d bytes are held", err, m.heldBytes)
	}
}

// A window is full when as many bytes are on their way, and not a message later.
func TestWindowOfALinkIsExact(t *testing.T) {
	m := lead(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 1)
	cost := m.links["b"].inFlight
	m = lead(t)
	m.config.Window = 2 * cost
	m.Actions()
	arrive(t, m, x, 1, 5)
	if data, _ := sends(t, m, kindData); m.links["b"].inFlight != 2*cost || len(data) == 0 {
		t.Errorf("%d bytes of %d are on their way", m.links["b"].inFlight, 2*cost)
	}
}

// A member that joins goes on behind the table that it gets.
func TestJoinerGoesOnBehindItsTable(t *testing.T) {
	x := Origin{"a", "x", 1}
	m := New(Config{Self: Origin{"a", "new", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall})
	if err := m.Join(1, (&frame{
		kind: kindTable, zones: []string{"a"},
		positions: []position{{Origin: x, Seq: 7, Acked: 5}},
	}).encode()); err != nil {
		t.Fatal(err)
	}
	if err := m.journal.invariant(); err != nil {
		t.Error(err)
	}
	arrive(t, m, x, 7, 9)
	if got := m.Delivered(); len(got) != 2 || got[0].Seq != 8 || m.streams[x].log.Len() != 2 {
		t.Errorf("%+v", got)
	}
}

// A reply that is no frames is refused.
func TestRepliesAreChecked(t *testing.T) {
	if err := lead(t).Fetched(2, []byte{200, 1, 2}); err == nil {
		t.Error("a reply of three bytes is taken")
	}
}
