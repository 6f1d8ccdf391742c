package stream

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// group returns the members of a view that starts together.
func group(t *testing.T, c Config, size protocol.Rank) []*Member {
	t.Helper()
	c.Size, c.Incarnation, c.View = size, 1, 1
	var list MemberList
	for r := range size {
		list = append(list, MemberID{r, 1})
	}
	c.Members = list
	members := make([]*Member, size)
	for r := range members {
		c.Rank = protocol.Rank(r)
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		members[r] = m
	}
	return members
}

// sentFrame is a frame that a member has sent.
type sentFrame struct {
	to    protocol.Rank
	frame []byte
}

// drain returns what a member sends now. As a driver does, it calls the member again if that is
// still due.
func drain(m *Member, now protocol.Time) (frames []sentFrame) {
	for round := 0; round == 0 || m.Deadline() <= now; round++ {
		for to, head, body, ok := m.Next(now); ok; to, head, body, ok = m.Next(now) {
			frames = append(frames, sentFrame{to, slices.Concat(head, body)})
		}
		if round > 3 {
			panic("a member that is always due")
		}
	}
	return frames
}

// The offers of all streams may be more than a queue holds. A peer whose queue has room
// again is offered what it has missed, so that offers do not fill the queue for ever.
func TestWritableOffersWhatWasMissed(t *testing.T) {
	members := group(t, Config{}, 8)
	m := members[0]
	for r, root := range members[1:] {
		if err := root.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		for _, f := range drain(root, 1) {
			if err := m.Receive(1, protocol.Rank(r+1), f.frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	drain(m, 1)
	m.Writable(2, 3)
	if frames := drain(m, 2); len(frames) > 0 {
		t.Errorf("nothing was refused, but room in the queue leads to %d frames", len(frames))
	}
	m.Up(3, 3)
	offers := 0
	for {
		to, head, _, ok := m.Next(3)
		if !ok {
			break
		}
		if to == 3 && kind(head[0]) == offer {
			offers++
			if offers > 3 { // the queue has room for three
				m.SendFailed(3, true)
			}
		}
	}
	if offers != 7 {
		t.Fatalf("%d offers to a peer that is back, want one for each of 7 streams", offers)
	}
	m.Writable(4, 3)
	if frames := drain(m, 4); len(frames) != 4 {
		t.Errorf("%d frames, want offers of the 4 streams that did not fit", len(frames))
	}
}

// A member of the next view may install it later than the others. What it lacks of the
// view before stays in flight until it grants it, so no member trims it.
func TestMemberThatInstallsLateLosesNothing(t *testing.T) {
	const keep = 64 << 10
	members := group(t, Config{SegmentSize: 4096, KeepBytes: keep, InboxBytes: keep}, 3)
	root, other := members[0], members[1]
	payload := bytes.Repeat([]byte{7}, 4096) // too long for a batch
	now := protocol.Time(1)
	run := func() { // rank 2 gets nothing
		for range 40 {
			now += 10 * millisecond
			for root.Write(payload, 0) == nil {
			}
			for _, f := range drain(root, now) {
				if f.to == 1 {
					_ = other.Receive(now, 0, f.frame)
				}
			}
			for _, f := range drain(other, now) {
				if f.to == 0 {
					_ = root.Receive(now, 1, f.frame)
				}
			}
			for _, ok := other.Deliver(now); ok; _, ok = other.Deliver(now) {
			}
		}
	}
	run()
	if root.own.flow.next < 3 {
		t.Fatal("the root has sent next to nothing")
	}
	cut := root.Freeze()
	other.Freeze()
	for _, m := range members[:2] {
		m.Flush(now, cut)
		if err := m.Install(now, 2, 3, m.roster.members); err != nil {
			t.Fatal(err)
		}
	}
	run()
	for _, m := range members[:2] {
		if kept := m.flows[0].store.firstKept(0); kept > 0 {
			t.Errorf("rank %d has trimmed %d segments of the view before, which rank 2 lacks", m.config.Rank, kept)
		}
	}
}

// A process that is not in a view delivers nothing that was sent in it, even if it has
// installed the view because that ends its membership.
func TestNothingIsDeliveredBehindTheLastCut(t *testing.T) {
	members := group(t, Config{}, 3)
	root, leaver := members[0], members[2]
	say := func(text string) {
		if err := root.Write([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		for _, f := range drain(root, 1) {
			_ = leaver.Receive(1, 0, f.frame)
		}
	}
	say("before")
	cut := root.Freeze()
	leaver.Freeze()
	rest := MemberList{{0, 1}, {1, 1}}
	root.Flush(1, cut)
	if err := root.Install(1, 2, 3, rest); err != nil {
		t.Fatal(err)
	}
	// The root goes on as if the leaver were still there, at the next rank of the tree.
	root.flows[0].children = []protocol.Rank{2}
	say("after")
	leaver.Flush(1, cut)
	if err := leaver.Install(1, 2, 3, rest); err != nil {
		t.Fatal(err)
	}
	say("later")
	var got []string
	for m, ok := leaver.Deliver(1); ok; m, ok = leaver.Deliver(1) {
		got = append(got, string(m.Data))
	}
	if !slices.Equal(got, []string{"before"}) {
		t.Errorf("the leaver gets %q, want what was sent before the cut", got)
	}
}

// A process that takes the place of another begins a stream of its own, whatever the
// member that let it in says about the stream of the other.
func TestSuccessorBeginsItsOwnStream(t *testing.T) {
	members := group(t, Config{}, 2)
	replaced := members[0]
	if err := replaced.Write([]byte("old"), 0); err != nil {
		t.Fatal(err)
	}
	drain(replaced, 1)
	cut := replaced.Freeze()
	replaced.Flush(1, cut)
	view := MemberList{{0, 2}, {1, 1}}
	if err := replaced.Install(1, 2, 2, view); err != nil {
		t.Fatal(err)
	}
	for _, p := range replaced.Positions() {
		if p.Rank == 0 {
			t.Errorf("the replaced process names the position of its own stream, which has ended: %+v", p)
		}
	}
	m, err := New(Config{Size: 2, Incarnation: 2, View: 2, Members: view, Start: []Position{{MemberID{0, 1}, 1, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.flows[0] != m.own.flow {
		t.Error("its own stream is that of the process before")
	}
}

// A member that has nobody to send to goes on all the same: nothing else would call it.
func TestLastMemberSendsAllThatWaits(t *testing.T) {
	m := group(t, Config{SegmentSize: 16}, 1)[0]
	for i := range 5 {
		if err := m.Write(make([]byte, 16), 16*(4-i)); err != nil {
			t.Fatal(err)
		}
	}
	drain(m, 1)
	if m.Unwritten() > 0 {
		t.Errorf("%d segments wait for another call", m.Unwritten())
	}
}
