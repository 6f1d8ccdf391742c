package stream_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// changeView takes the survivors of a network from one view to the next, as a
// membership protocol does: freeze all, merge their positions, flush, install.
func (n *network) changeView(number uint64, live []protocol.Rank) {
	n.t.Helper()
	cut := map[protocol.Rank]stream.Position{}
	for _, r := range live {
		for _, p := range n.members[r].Freeze() {
			if p.Next > cut[p.Rank].Next {
				cut[p.Rank] = p
			}
		}
		for range n.rng.IntN(20) { // others are not frozen yet
			n.step()
		}
	}
	var positions []stream.Position
	for _, p := range cut {
		positions = append(positions, p)
	}
	slices.SortFunc(positions, func(a, b stream.Position) int { return int(a.Rank - b.Rank) })
	members := make(stream.MemberList, len(live))
	for i, r := range live {
		members[i] = stream.MemberID{Rank: r, Incarnation: 1}
		n.members[r].Flush(n.now, positions)
		n.pump(n.members[r])
	}
	for _, r := range live {
		for h, until := n.members[r], n.now+minute/12; !h.Flushed(); {
			if !n.step() || n.now > until {
				n.t.Fatalf("rank %d lacks something of %v and nothing happens", r, positions)
			}
		}
		if err := n.members[r].Install(n.now, number, protocol.Rank(len(n.members)), members); err != nil {
			n.t.Fatal(err)
		}
		n.pump(n.members[r])
		for range n.rng.IntN(20) {
			n.step()
		}
	}
}

// Same-view delivery: members die in the middle of broadcasts, views follow, and all
// members that go from one view to the next have delivered the same in the first. What
// live roots send arrives everywhere, once, in order, across views.
func TestSameViewDelivery(t *testing.T) {
	seeds := uint64(150)
	if testutil.RaceEnabled || testing.Short() {
		seeds = 20 // one goroutine: the race detector finds nothing here
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			const size = 14
			n := newNetwork(t, size, seed, faults{drop: 0.02, reorder: 0.02}, func(c *stream.Config) {
				c.Members = nil
				c.SegmentSize = 100
			})
			live := []protocol.Rank{}
			for r := range protocol.Rank(size) {
				live = append(live, r)
			}
			sent := map[protocol.Rank][][]byte{}
			for view := uint64(2); view <= 5; view++ {
				for i := range 3 {
					for _, r := range live {
						m := message(r, int(view)*100+i, 20+n.rng.IntN(400))
						sent[r] = append(sent[r], m)
						n.broadcast(r, m)
						for range n.rng.IntN(10) {
							n.step()
						}
					}
				}
				for range 1 + n.rng.IntN(2) {
					i := n.rng.IntN(len(live))
					n.members[live[i]].dead = true
					live = slices.Delete(live, i, i+1)
				}
				for range n.rng.IntN(60) {
					n.step()
				}
				n.changeView(view, live)
				n.sameDelivered(live, view)
			}
			n.run(minute)
			n.check(sent)
		})
	}
}

// sameDelivered checks that all members have delivered the same in all views before.
func (n *network) sameDelivered(live []protocol.Rank, view uint64) {
	n.t.Helper()
	of := func(r, root protocol.Rank) (all [][]byte) {
		for i, m := range n.members[r].delivered[root] {
			if n.members[r].views[root][i] < view {
				all = append(all, m)
			}
		}
		return all
	}
	for root := range n.members {
		first := protocol.NoRank
		for _, r := range live {
			switch {
			case r == protocol.Rank(root):
			case first == protocol.NoRank:
				first = r
			default:
				a, b := of(first, protocol.Rank(root)), of(r, protocol.Rank(root))
				if !slices.EqualFunc(a, b, bytes.Equal) {
					n.t.Fatalf("before view %d, rank %d has delivered %d messages of root %d, rank %d %d", view, first, len(a), root,
						r, len(b))
				}
			}
		}
	}
}

// A message that a view cuts in two is dropped by all, and its writer is told.
func TestViewCutsAMessage(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, func(c *stream.Config) { c.SegmentSize = 10 })
	root := n.members[0]
	if err := root.Write([]byte("half of it"), 10); err != nil {
		t.Fatal(err)
	}
	n.pump(root)
	for range 10 {
		n.step()
	}
	n.members[3].dead = true
	n.changeView(2, []protocol.Rank{0, 1, 2})
	if root.Restarts() != 1 {
		t.Fatalf("%d restarts, want 1", root.Restarts())
	}
	n.broadcast(0, []byte("a whole message"))
	n.run(minute)
	for _, r := range []int{1, 2} {
		if got := n.members[r].delivered[0]; len(got) != 1 || string(got[0]) != "a whole message" {
			t.Errorf("rank %d got %q", r, got)
		}
	}
}

// A joiner begins where its view does: it gets all that follows, and nothing from
// before.
func TestJoinerBeginsWithItsView(t *testing.T) {
	n := newNetwork(t, 5, 1, faults{}, nil)
	n.members[4].dead = true // it has not started yet
	sent := map[protocol.Rank][][]byte{}
	for i := range 3 {
		n.broadcast(1, message(1, i, 100))
	}
	for range 50 {
		n.step()
	}
	n.changeView(2, []protocol.Rank{0, 1, 2, 3})
	joiner, err := stream.New(stream.Config{
		Rank: 4, Size: 5, Incarnation: 1, View: 2,
		Start: n.members[2].Positions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.members[4].Member, n.members[4].dead = joiner, false
	all := stream.MemberList{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}
	for _, h := range n.members[:4] {
		h.Freeze()
		if err := h.Install(n.now, 2, 5, all); err != nil {
			t.Fatal(err)
		}
		h.delivered = map[protocol.Rank][][]byte{}
	}
	for i := range 3 {
		m := message(1, 10+i, 100)
		sent[1] = append(sent[1], m)
		n.broadcast(1, m)
	}
	m := message(4, 0, 10)
	sent[4] = append(sent[4], m)
	n.broadcast(4, m)
	n.run(minute)
	n.check(sent)
}

// A process that is not in the view, and does not know it yet, is offered nothing that was
// sent in it: it would take that for a message of the view before.
func TestRemovedMemberIsOfferedNothingOfTheNextView(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1, View: 1})
	p.receive(0, rawFrame(dataFrame, 0, "before"))
	p.Freeze()
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 1, Holder: 0}})
	if err := p.Install(p.now, 2, 4, stream.MemberList{
		{Rank: 0, Incarnation: 1},
		{Rank: 1, Incarnation: 1},
		{Rank: 2, Incarnation: 1},
	}); err != nil {
		t.Fatal(err)
	}
	p.receive(0, rawFrame(dataFrame, 1, "after"))
	const rightward = 16
	question := rawFrame(offerFrame, 1, "")
	question[1] |= rightward
	answered := map[protocol.Rank]uint64{}
	for _, from := range []protocol.Rank{2, 3} {
		p.receive(from, question)
		for {
			to, head, _, ok := p.Next(p.now)
			if !ok {
				break
			}
			if head[0] == offerFrame {
				answered[to] = binary.BigEndian.Uint64(head[14:])
			}
		}
	}
	if answered[2] != 2 || answered[3] != 1 {
		t.Errorf("offers %v, want 2 to the member and 1 to the removed one", answered)
	}
}

// Known holes are routed around: nothing is sent to them, and the others still
// get everything along the tree.
func TestKnownHolesAreRoutedAround(t *testing.T) {
	const size = 32
	n := newNetwork(t, size, 1, faults{}, nil)
	var live []protocol.Rank
	for r := range protocol.Rank(size) {
		if r == 1 || r == 2 || r == 7 || r == 16 {
			n.members[r].dead = true
		} else {
			live = append(live, r)
		}
	}
	n.changeView(2, live)
	n.run(minute)
	before := n.members[0].Stats()
	sent := map[protocol.Rank][][]byte{}
	for i := range 20 {
		m := message(0, i, 2000)
		sent[0] = append(sent[0], m)
		n.broadcast(0, m)
	}
	n.run(n.now + minute)
	n.check(sent)
	var relayed, repaired, early uint64
	for _, r := range live {
		s := n.members[r].Stats()
		relayed, repaired, early = relayed+s.Relayed, repaired+s.Repaired, early+s.Early
	}
	if want := uint64(20 * (len(live) - 1)); relayed != want || repaired != 0 || early != 0 {
		t.Errorf("relayed %d, want %d; repaired %d, early %d, want none (root before: %+v)", relayed, want, repaired,
			early, before)
	}
}

// A frozen member whose inbox is full still accepts what all members wait for.
func TestFlushIgnoresTheInboxLimit(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, func(c *stream.Config) {
		c.InboxBytes = 64 << 10
		if c.Rank == 2 {
			c.InboxBytes = 4 << 10
		}
	})
	n.members[2].dead = true // cut off
	n.broadcast(0, message(0, 0, 3000))
	n.run(minute)
	n.members[2].dead = false
	lacking := n.members[2]
	lacking.Freeze()
	for i := range 5 { // of another root, which is in the next view already
		n.broadcast(1, message(1, i, 3000))
	}
	for range 40 {
		n.step()
	}
	lacking.Flush(n.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 1, Holder: 0}})
	n.pump(lacking)
	for !lacking.Flushed() {
		if !n.step() || n.now > minute {
			t.Fatalf("what the cut needs does not come: %+v", lacking.Stats())
		}
	}
}

// A view does not wait for what no member keeps: members that are further behind, even
// if they are half of all, give it up, are told, and go on with the others.
func TestViewGivesUpTrimmedSegments(t *testing.T) {
	const sent = 200
	for _, lagging := range [][]protocol.Rank{{3}, {1, 3}} {
		t.Run(fmt.Sprint(lagging), func(t *testing.T) {
			n := newNetwork(t, 5, 1, faults{}, func(c *stream.Config) { c.KeepBytes = 40 << 10 })
			n.broadcast(0, message(0, 0, 2000))
			n.run(minute)
			for _, r := range lagging {
				n.members[r].dead = true // cut off, as its peers see it
			}
			for i := 1; i < sent; i++ {
				n.broadcast(0, message(0, i, 2000))
			}
			n.run(n.now + minute)
			n.members[4].dead = true
			for _, r := range lagging {
				n.members[r].dead = false
				for _, h := range n.members {
					h.Up(n.now, r)
				}
			}
			n.changeView(2, []protocol.Rank{0, 1, 2, 3})
			n.broadcast(0, message(0, sent, 2000))
			n.run(n.now + minute)
			for _, r := range lagging {
				h := n.members[r]
				if got := uint64(len(h.delivered[0])); got < 3 || h.lost == 0 || got+h.lost != sent+1 {
					t.Errorf("rank %d got %d messages, %d lost, of %d", r, got, h.lost, sent+1)
				}
				if views := h.views[0]; views[len(views)-2] != 0 || views[len(views)-1] != 2 {
					t.Errorf("rank %d got messages in views %v", r, views)
				}
			}
		})
	}
}

// What a frozen member gives up is reported in stream order: behind what arrived before
// it, which is not delivered until the view is installed.
func TestFrozenMemberGivesUpInOrder(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1, View: 1})
	p.Freeze()
	for n := range uint64(5) {
		p.receive(0, rawFrame(dataFrame, n, "x"))
	}
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 60, Holder: 2}})
	p.run(10*time.Second, func(to protocol.Rank, missing uint64) {
		switch {
		case to == 3: // does not answer
		case missing < 50:
			p.receive(to, rawFrame(trimmedFrame, 50, ""))
		default:
			p.receive(to, rawFrame(repairFrame, missing, "x"))
		}
	})
	if !p.Flushed() || p.Pending() != 0 {
		t.Fatalf("flushed: %v, with %d delivered before the view", p.Flushed(), p.Pending())
	}
	if err := p.Install(p.now, 2, 4, stream.MemberList{{0, 1}, {1, 1}, {2, 1}}); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		m, ok := p.Deliver(p.now)
		want := stream.Message{View: 1, Data: []byte("x")}
		if i == 5 {
			want = stream.Message{View: 1, Lost: 45}
		}
		if !ok || m.View != want.View || m.Lost != want.Lost || !bytes.Equal(m.Data, want.Data) {
			t.Errorf("delivery %d is %+v, %v, want %+v", i, m, ok, want)
		}
	}
}

// A frozen member waits for what a slow one still keeps, however often others reply
// that they have trimmed it.
func TestFrozenMemberWaitsForASlowHolder(t *testing.T) {
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	p.Freeze()
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 10, Holder: 2}})
	p.run(400*time.Millisecond, func(to protocol.Rank, _ uint64) {
		if to != 2 {
			p.receive(to, rawFrame(trimmedFrame, 10, ""))
		}
	})
	p.run(time.Second, func(to protocol.Rank, missing uint64) {
		if to == 2 {
			p.receive(to, rawFrame(repairFrame, missing, "x"))
		}
	})
	if s := p.Stats(); !p.Flushed() || s.Lost != 0 {
		t.Errorf("flushed: %v, %d lost", p.Flushed(), s.Lost)
	}
}

// A frozen member gives nothing up because a process that joins with the next view does not
// have it: the members of its own view do.
func TestFrozenMemberIgnoresWhatAJoinerLacks(t *testing.T) {
	const joiner = 2
	p := newPeer(t, stream.Config{Rank: 1, Size: 3, Incarnation: 1})
	p.Flush(p.now, p.Freeze())
	if err := p.Install(p.now, 2, 3, stream.MemberList{{0, 1}, {1, 1}}); err != nil {
		t.Fatal(err)
	}
	p.Freeze()
	p.Flush(p.now, []stream.Position{{MemberID: stream.MemberID{Rank: 0, Incarnation: 1}, Next: 10, Holder: 0}})
	p.run(400*time.Millisecond, func(protocol.Rank, uint64) {
		p.receive(joiner, rawFrame(trimmedFrame, 10, ""))
	})
	if p.Flushed() {
		t.Fatal("flushed without an answer of the root")
	}
	p.run(time.Second, func(to protocol.Rank, missing uint64) { p.receive(to, rawFrame(repairFrame, missing, "x")) })
	if s := p.Stats(); !p.Flushed() || s.Lost != 0 {
		t.Errorf("flushed: %v, %d lost", p.Flushed(), s.Lost)
	}
}
