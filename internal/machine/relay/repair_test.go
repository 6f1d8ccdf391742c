package relay

import (
	"errors"
	"testing"
)

// plain starts a member of zone "a" that is no delegate, of rank 5. The delegate is of rank 0.
func plain(t *testing.T) *Machine {
	t.Helper()
	m := New(Config{
		Self: Origin{"a", "plain", 1}, KeepBytes: 1 << 20, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
		GapDelay: 500, WatermarkDelay: 10,
	})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}}, 5)
	return m
}

// fetches returns the requests that a machine has made since the last call.
func fetches(m *Machine) (list []Fetch) {
	for _, a := range m.Actions() {
		if f, ok := a.(Fetch); ok {
			list = append(list, f)
		}
	}
	return list
}

// A member that misses messages gets them from a delegate, in order, and a request that is none is
// refused.
func TestMissingMessagesAreFetched(t *testing.T) {
	m, delegate := plain(t), lead(t)
	x := Origin{"a", "x", 1}
	arrive(t, delegate, x, 1, 3)
	arrive(t, m, x, 3, 3)
	m.Tick(m.Deadline())
	asked := fetches(m)
	if len(asked) != 1 || asked[0].Rank != 0 {
		t.Fatalf("requests %v", asked)
	}
	reply, err := delegate.Serve(asked[0].Frame)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Fetched(1000, reply); err != nil {
		t.Fatal(err)
	}
	if got := m.Delivered(); len(got) != 3 || got[0].Seq != 1 || got[2].Seq != 3 {
		t.Errorf("delivered %v", got)
	}
	if _, err := delegate.Serve((&frame{kind: kindData, origin: x, seq: 1}).append(nil)); !errors.Is(err, ErrFrame) {
		t.Errorf("a message as a request: %v", err)
	}
}

// A member whose delegate does not have a message any more waits for others that may have it, and
// gives it up then: one that is lost does not hold up those after it for good.
func TestMessageThatDelegatesHaveDroppedIsGivenUp(t *testing.T) {
	m := plain(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 2, 2)
	if err := m.Fetched(10, (&frame{kind: kindLost, origin: x, seq: 1}).encode()); err != nil {
		t.Fatal(err)
	}
	m.Tick(giveUpAfter * modelStall)
	if len(m.Delivered()) > 0 {
		t.Error("a message is given up too early")
	}
	if err := m.Fetched(giveUpAfter*modelStall, (&frame{kind: kindLost, origin: x, seq: 1}).encode()); err != nil {
		t.Fatal(err) // which does not begin the time anew
	}
	m.Tick(m.Deadline()) // when it would ask again
	if got := m.Delivered(); len(got) != 2 || got[0].Lost != 1 || got[1].Seq != 2 {
		t.Errorf("delivered %v", got)
	}
}

// A notice of lost messages that this member has got means nothing to it.
func TestWhatIsHereIsNotLost(t *testing.T) {
	m := plain(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 2)
	if err := m.Fetched(10, (&frame{kind: kindLost, origin: x, seq: 1}).encode()); err != nil {
		t.Fatal(err)
	}
	if due := m.Deadline(); due >= 0 || len(m.gaps) > 0 {
		t.Errorf("%d origins miss something, and it is looked at again at %d", len(m.gaps), due)
	}
}

// A lead gives up what nobody has shipped for long: all that is missing before the first message
// that waits, whatever an older watermark or table has told of the origin.
func TestLeadGivesUpWhatNobodyHas(t *testing.T) {
	x := Origin{"a", "x", 1}
	for seen := range uint64(7) {
		m := lead(t)
		arrive(t, m, x, 1, 2)
		m.expect(2, m.streams[x], seen)
		arrive(t, m, x, 5, 6)
		m.Delivered()
		m.Tick(2 + giveUpAfter*modelStall)
		if got := m.Delivered(); len(got) != 3 || got[0].Lost != 2 || got[1].Seq != 5 || got[2].Seq != 6 {
			t.Errorf("a delegate was at %d: delivered %v", seen, got)
		}
	}
	m := lead(t) // nothing waits, but a delegate has told of more
	arrive(t, m, x, 1, 2)
	m.expect(2, m.streams[x], 4)
	m.Delivered()
	m.Tick(2 + giveUpAfter*modelStall)
	if got := m.Delivered(); len(got) != 1 || got[0].Lost != 2 || got[0].Seq != 5 {
		t.Errorf("delivered %v", got)
	}
}

// When its zone gives up messages, a lead ships those after them at once.
func TestLeadShipsWhatFollowsLostMessages(t *testing.T) {
	m := lead(t)
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 2, 2)
	if err := m.FromZone(3, 5, (&frame{kind: kindLost, origin: x, seq: 1}).encode()); err != nil {
		t.Fatal(err)
	}
	if data, _ := sends(t, m, kindData); len(data) != 1 || data[0].seq != 2 {
		t.Errorf("%d messages are shipped", len(data))
	}
}
