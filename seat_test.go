package pleach

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
)

// seatOf returns a member as it was saved in a view.
func seatOf(t *testing.T, v membership.View, rank int) *membership.Seat {
	t.Helper()
	m, err := membership.New(membership.Config{Self: *v.Members.At(rank), View: v, Log: &member.Seat{}, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	state, _, _ := m.Unsaved()
	saved, err := membership.DecodeSeat(state)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// A process that is started again has its place in view 2, which also has a member of
// view 1. If that one is a seat, too, it has no messages and waits for this process: this
// process begins the view by itself. So it does if that one is dead. It does not if that
// one has its messages.
func TestSeatBeginsAViewThatOnlySeatsSurvive(t *testing.T) {
	c := Config{Group: "seats", DataDir: t.TempDir()}
	if err := c.check(modeJoin); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := listener.Addr().String()
	_ = listener.Close()
	if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	before := membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(
		membership.Member{Rank: 0, Identity: "a", Address: dead, Incarnation: 1, Nonce: 1},
		membership.Member{Rank: 1, Identity: "b", Address: listener.Addr().String(), Incarnation: 1, Nonce: 2},
	)}
	data, err := c.openDataDir()
	if err != nil {
		t.Fatal(err)
	}
	defer data.close()
	state := &initialState{self: *before.Members.At(1), data: data}
	state.search = c.newSearch(state, nil)
	defer state.search.close()
	other, err := c.newSeat(state, seatOf(t, before, 1), listener)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	running, err := Create(t.Context(), Config{Group: "seats", Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Abort()

	self := membership.Member{Rank: 0, Identity: "a", Address: dead, Incarnation: 2, Nonce: 3}
	for name, test := range map[string]struct {
		address     string
		incarnation uint64
		alone       bool
		enter       bool
	}{
		"a seat":                 {listener.Addr().String(), 1, true, false},
		"a seat of another time": {listener.Addr().String(), 2, false, false},
		"a dead process":         {dead, 1, true, false},
		"a member":               {running.Self().Address, 1, false, true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		s := &initialState{self: self}
		s.search = c.newSearch(s, nil)
		restarted := &seat{config: &c, state: s, saved: seatOf(t, before, 0)}
		alone, enter, err := restarted.alone(ctx, &membership.View{Number: 3, Slots: 2, Members: membership.MembersOf(
			membership.Member{Rank: 0, Identity: "a", Address: dead, Incarnation: 3, Nonce: 3},
			membership.Member{Rank: 1, Identity: "b", Address: test.address, Incarnation: test.incarnation, Nonce: 2},
		)})
		cancel()
		if alone != test.alone || enter != test.enter || err != nil {
			t.Errorf("beside %s: alone %v, enter %v, %v", name, alone, enter, err)
		}
	}
}
