package relay

import "testing"

// polls counts the questions whether broadcasts are stable, since the last call.
func polls(m *Machine) (n int) {
	for _, a := range m.Actions() {
		if _, ok := a.(Poll); ok {
			n++
		}
	}
	return n
}

// Acknowledgments wait for more to acknowledge, for as long as the config says and no longer, also
// after others were sent.
func TestAcknowledgmentsWaitForMore(t *testing.T) {
	m := lead(t)
	m.config.AckDelay = 7 // less than what else is due
	fromPeer(t, m, 2, 1, &frame{kind: kindBase, zone: "b"})
	for round := range uint64(2) {
		now := Time(10_000 * (round + 1))
		m.Tick(now - 1000) // what else is due
		m.Actions()
		fromPeer(t, m, now, 1, &frame{kind: kindData, origin: Origin{"b", "y", 1}, seq: round + 1, data: []byte("d")})
		m.Tick(now + m.config.AckDelay - 1)
		if polls(m) > 0 {
			t.Errorf("round %d: an acknowledgment does not wait", round)
		}
		if due := m.Deadline(); due != now+m.config.AckDelay {
			t.Errorf("round %d: the machine is to be called at %d, not when an acknowledgment is due at %d", round, due,
				now+m.config.AckDelay)
		}
		m.Tick(now + m.config.AckDelay)
		if polls(m) != 1 {
			t.Errorf("round %d: an acknowledgment waits for too long", round)
		}
		m.Stable(now+m.config.AckDelay, true)
		if acks, _ := sends(t, m, kindAck); len(acks) != 1 || acks[0].positions[0].Seq != round+1 {
			t.Errorf("round %d: %d acknowledgments", round, len(acks))
		}
	}
}

// A zone whose lead has died gets back what it has shipped and its own members lack, of its
// present life, with a notice of what was dropped here, and no notice if nothing was.
func TestZoneGetsItsOwnMessagesBack(t *testing.T) {
	const born = 5
	for _, c := range []struct {
		first, has  uint64 // the first message that is kept here, and the position of the other zone
		incarnation uint64
		lost, data  int
	}{
		{first: 1, has: 0, incarnation: born, data: 3},
		{first: 1, has: 0, incarnation: born - 1},
		{first: 1, has: 2, incarnation: born + 1, data: 1},
		{first: 2, has: 1, incarnation: born, data: 2},
		{first: 3, has: 1, incarnation: born, lost: 1, data: 1},
	} {
		m := lead(t)
		y := Origin{"b", "y", c.incarnation}
		m.startAt(1, m.stream(1, y), c.first)
		arrive(t, m, y, c.first, 3)
		m.Actions()
		fromPeer(t, m, 3, 1, &frame{
			kind: kindSync, zone: "b", zones: []string{"a", "b"}, covers: []string{"b"}, born: born,
			positions: []position{{Origin: y, Seq: c.has}},
		})
		data, lost := 0, 0
		for _, a := range m.Actions() {
			if s, ok := a.(Send); ok && kindOf(s.Frame) == kindData {
				data++
			} else if ok && kindOf(s.Frame) == kindLost {
				lost++
			}
		}
		if data != c.data || lost != c.lost {
			t.Errorf("%+v: %d messages and %d notices come back", c, data, lost)
		}
	}
}
