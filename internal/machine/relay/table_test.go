package relay

import "testing"

// What a driver sees of a machine, and others get of it.

// arrive has messages of an origin arrive from the zone of a machine.
func arrive(t *testing.T, m *Machine, o Origin, from, to uint64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		if err := m.FromZone(2, 5, (&frame{kind: kindData, origin: o, seq: seq, data: []byte("d")}).encode()); err != nil {
			t.Fatal(err)
		}
	}
}

// A table has all that the log keeps, the oldest too.
func TestTableHasTheWholeLog(t *testing.T) {
	m := lead(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 3)
	frames, err := splitFrames(m.table())
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for _, f := range frames {
		if f.kind == kindData && f.origin == x {
			seqs = append(seqs, f.seq)
		}
	}
	if len(seqs) != 3 || seqs[0] != 1 {
		t.Errorf("messages %v", seqs)
	}
}

// The state of a link names the gateway, and says how much of this zone's messages the other zone
// may lack.
func TestLinksTellWhatZonesLack(t *testing.T) {
	m := lead(t)
	m.SetBackbone(2, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b", Age: 1}, {Rank: 3, Zone: "c", Age: 3}})
	fromPeer(t, m, 2, 3, &frame{kind: kindReply, zone: "c", zones: []string{"a", "b", "c"}, covers: []string{"a"}})
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 5)
	fromPeer(t, m, 3, 1, &frame{kind: kindAck, zone: "b", positions: []position{{Origin: x, Seq: 2}}})
	m.summaries["away"] = Summary{} // known by what others say of it
	links := m.Links()
	if len(links) != 3 || links[0].Zone != "away" || links[0].Connected || links[1].LagBytes == 0 {
		t.Fatalf("%+v", links)
	}
	links = links[1:]
	for i, want := range []LinkState{
		{Zone: "b", Connected: true, Gateway: 1, Lag: 3},
		{Zone: "c", Connected: true, Gateway: 3, Lag: 5},
	} {
		want.LagBytes, want.Heard = links[i].LagBytes, links[i].Heard
		if links[i] != want {
			t.Errorf("%+v, want %+v", links[i], want)
		}
	}
}

// What has arrived while a gateway asked whether the rest is stable is asked about as soon as that
// is answered.
func TestStableIsAskedAgainAtOnce(t *testing.T) {
	m := lead(t)
	y := Origin{"b", "y", 1}
	ships := func(seq uint64) {
		fromPeer(t, m, 2, 1, &frame{kind: kindData, origin: y, seq: seq, data: make([]byte, m.config.AckBytes)})
		if err := m.FromZone(2, 0,
			(&frame{kind: kindData, origin: y, seq: seq, data: make([]byte, m.config.AckBytes)}).encode()); err != nil {
			t.Fatal(err)
		}
	}
	ships(1)
	if n := polls(m); n != 1 {
		t.Fatalf("%d questions", n)
	}
	ships(2)
	if n := polls(m); n != 0 {
		t.Errorf("%d questions beside one", n)
	}
	m.Stable(2, true)
	if n := polls(m); n != 1 {
		t.Errorf("%d questions about the rest", n)
	}
}

// A delegate that is not in the backbone any more ships nothing, and owes no acknowledgment. It
// does not know which zones are away.
func TestDelegateThatIsNotInTheBackbone(t *testing.T) {
	m := lead(t)
	y := Origin{"b", "y", 1}
	fromPeer(t, m, 2, 1, &frame{kind: kindData, origin: y, seq: 1, data: []byte("d")})
	if err := m.FromZone(2, 0, (&frame{kind: kindData, origin: y, seq: 1, data: []byte("d")}).encode()); err != nil {
		t.Fatal(err)
	}
	if len(m.links) == 0 || len(m.due) == 0 {
		t.Fatalf("%d links, %d to acknowledge", len(m.links), len(m.due))
	}
	m.SetBackbone(3, nil)
	if len(m.links) > 0 || len(m.due) > 0 || len(m.away) > 0 {
		t.Errorf("%d links, %d to acknowledge, away %v", len(m.links), len(m.due), m.away)
	}
}

// A member that has nothing of an origin answers nothing: not that its messages begin there.
func TestNothingIsFetchedWhereNothingIs(t *testing.T) {
	m := lead(t)
	x := Origin{"a", "x", 1}
	s := m.stream(2, x)
	s.first, s.next = 1, 1
	if reply := m.fetched(&frame{kind: kindFetch, origin: x}); reply != nil {
		t.Errorf("%q", reply)
	}
	arrive(t, m, x, 1, 2)
	for seq, want := range map[uint64]int{0: 3, 1: 2, 2: 1, 3: 0} { // with where they begin
		frames, err := splitFrames(m.fetched(&frame{kind: kindFetch, origin: x, seq: seq}))
		if len(frames) != want || err != nil {
			t.Errorf("from %d on: %d frames: %v", seq, len(frames), err)
		}
	}
}
