package relay

import (
	"encoding/binary"
	"testing"
)

// lead starts a lead of zone "a", of rank 0, with gateways of zone "b", of ranks 1 and 2,
// that have said that they have nothing.
func lead(t *testing.T) *Machine {
	t.Helper()
	m := New(Config{
		Self: Origin{"a", "self", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
		AckDelay: 10, AckBytes: 1 << 15, WatermarkDelay: 10,
	})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}}, 0)
	m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b", Age: 1}, {Rank: 2, Zone: "b", Age: 2}})
	m.Actions()
	fromPeer(t, m, 1, 1, &frame{kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"}})
	return m
}

func fromPeer(t *testing.T, m *Machine, now Time, rank int, f *frame) {
	t.Helper()
	if err := m.FromPeer(now, rank, f.encode()); err != nil {
		t.Fatal(err)
	}
}

// kindOf returns the kind of an encoded frame.
func kindOf(b []byte) kind {
	_, n := binary.Uvarint(b)
	return kind(b[n])
}

// sends returns the frames of a kind that a machine has sent since the last call.
func sends(t *testing.T, m *Machine, k kind) (list []*frame, to []int) {
	t.Helper()
	for _, a := range m.Actions() {
		if s, ok := a.(Send); ok && kindOf(s.Frame) == k {
			frames, err := splitFrames(s.Frame)
			if err != nil {
				t.Fatal(err)
			}
			list, to = append(list, frames[0]), append(to, s.Peer.Rank)
		}
	}
	return list, to
}

// A message that is dropped on its way to a gateway is shipped again, although
// acknowledgments for another origin go on.
func TestDroppedMessageIsShippedAgain(t *testing.T) {
	m := lead(t)
	x, y := Origin{"a", "x", 1}, Origin{"a", "y", 1}
	arrives := func(now Time, o Origin, seq uint64) {
		if err := m.FromZone(now, 5, (&frame{kind: kindData, origin: o, seq: seq, data: []byte("d")}).encode()); err != nil {
			t.Fatal(err)
		}
	}
	arrives(2, x, 1)
	m.Dropped(2, 1)
	now, seq := Time(2), uint64(0)
	for ; now < 3*modelStall; now += modelStall / 4 {
		seq++
		arrives(now, y, seq)
		fromPeer(t, m, now, 1, &frame{kind: kindAck, zone: "b", positions: []position{{Origin: y, Seq: seq}}})
		if _, to := sends(t, m, kindSync); len(to) > 0 {
			fromPeer(t, m, now, to[0], &frame{
				kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"},
				positions: []position{{Origin: y, Seq: seq}},
			})
			if list, _ := sends(t, m, kindData); len(list) > 0 && list[0].origin == x {
				return
			}
		}
	}
	t.Error("a message that was dropped is not shipped again")
}

// What was dropped on its way does not count as on its way any more: a gateway that has got
// nothing gets it again at once, although the window was full.
func TestDroppedMessagesLeaveTheWindow(t *testing.T) {
	m := lead(t)
	m.config.Window = 2 * entryOverhead
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 5)
	first, _ := sends(t, m, kindData)
	m.Dropped(3, 1)
	fromPeer(t, m, 4, 1, &frame{kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"}})
	if again, _ := sends(t, m, kindData); len(first) == 0 || len(first) == 5 || len(again) != len(first) ||
		again[0].seq != 1 {
		t.Errorf("%d of 5 messages are shipped, and %d again", len(first), len(again))
	}
}

// A lead ships to a delegate that is clearly nearer than the first, stays with it while it is
// nearer at all, and leaves it if it does not acknowledge.
func TestLeadShipsToTheNearest(t *testing.T) {
	m := lead(t)
	now := Time(1)
	// round has the lead measure both gateways, and returns the one that it ships to then.
	round := func(first, second Time) int {
		for range 2 {
			now = m.Deadline()
			for ; now < m.probes["b"].sent+probeDelay; now = m.Deadline() {
				m.Tick(now)
			}
			m.Tick(now)
			_, to := sends(t, m, kindSync)
			if len(to) != 1 {
				t.Fatalf("%d measurements at a time", len(to))
			}
			now += map[int]Time{1: first, 2: second}[to[0]]
			fromPeer(t, m, now, to[0], &frame{kind: kindReply, zone: "b", zones: []string{"a", "b"}})
			if _, to := sends(t, m, kindSync); len(to) > 0 { // it begins a link
				fromPeer(t, m, now, to[0], &frame{
					kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"},
					positions: m.positions([]string{"a"}),
				})
			}
		}
		return m.links["b"].gateway.Rank
	}
	const ms = Time(1e6)
	for i, c := range []struct {
		first, second Time
		gateway       int
	}{
		{100 * ms, 80 * ms, 1}, // not by a quarter
		{100 * ms, 80 * ms, 1},
		{100 * ms, 40 * ms, 2},
		{100 * ms, 400 * ms, 2}, // a moment
		{90 * ms, 90 * ms, 2},
		{80 * ms, 90 * ms, 1},
		{80 * ms, 40 * ms, 2},
	} {
		if gateway := round(c.first, c.second); gateway != c.gateway {
			t.Errorf("round %d: ships to %d, not %d: %v", i, gateway, c.gateway, m.trips)
		}
	}
	m.Broadcast(now, "", []byte("x"))
	if _, to := sends(t, m, kindData); len(to) != 1 || to[0] != 2 {
		t.Fatalf("shipped to %v", to)
	}
	m.Tick(now + modelStall)
	fromPeer(t, m, now+modelStall, 1, &frame{kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"}})
	fromPeer(t, m, now+modelStall, 1, &frame{kind: kindAck, zone: "b", positions: m.positions([]string{"a"})})
	if l := m.links["b"]; l.gateway.Rank != 1 || l.backoff > 0 {
		t.Errorf("it ships to %d, which does not acknowledge", l.gateway.Rank)
	}
}

// A choice takes two measurements of each delegate, and a quarter less time, or any less if
// messages are shipped there already.
func TestNearestDelegate(t *testing.T) {
	first, second := Peer{Rank: 1, Zone: "b"}, Peer{Rank: 2, Zone: "b"}
	for _, c := range []struct {
		first, second trip
		now, want     Peer
	}{
		{trip{100, 2}, trip{74, 2}, first, second},
		{trip{100, 2}, trip{75, 2}, first, first},
		{trip{100, 1}, trip{10, 2}, first, first},
		{trip{100, 2}, trip{10, 1}, first, first},
		{trip{100, 2}, trip{99, 2}, second, second},
		{trip{100, 2}, trip{100, 2}, second, first},
	} {
		s := survey{trips: map[Peer]trip{first: c.first, second: c.second}}
		if got := s.nearest([]Peer{first, second}, first, c.now); got != c.want {
			t.Errorf("%v and %v, shipped to %d: %d is chosen", c.first, c.second, c.now.Rank, got.Rank)
		}
	}
}

// A gateway that has named messages acknowledges them, too. If that is lost, the lead asks again:
// origins would wait for ever otherwise.
func TestLostAcknowledgmentIsAskedForAgain(t *testing.T) {
	m := New(Config{
		Self: Origin{"a", "self", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
		WatermarkDelay: 10,
	})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}}, 0)
	m.Broadcast(1, "", []byte("x"))
	m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
	m.Actions()
	reply := &frame{
		kind: kindReply, zone: "b", zones: []string{"a", "b"}, covers: []string{"a"},
		positions: []position{{Origin: m.self, Seq: 1}},
	}
	fromPeer(t, m, 2, 1, reply)
	m.Actions()
	at := m.Deadline()
	for ; at < 2*modelStall && at >= 0; at = m.Deadline() {
		m.Tick(at)
		if len(m.actions) > 0 {
			if asked, _ := sends(t, m, kindSync); len(asked) == 1 {
				fromPeer(t, m, at, 1, reply)
				fromPeer(t, m, at, 1, &frame{kind: kindAck, zone: "b", positions: reply.positions})
				if !m.Window(1) || m.links["b"].waits() {
					t.Error("the window waits for an acknowledgment that has come")
				}
				return
			}
		}
	}
	t.Error("an acknowledgment that is lost is not asked for again")
}
