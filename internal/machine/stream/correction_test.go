package stream_test

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// frames returns all frames that a member sends at a time, by receiver.
func frames(m *stream.Member, now protocol.Time) map[protocol.Rank][][]byte {
	sent := map[protocol.Rank][][]byte{}
	for {
		to, head, body, ok := m.Next(now)
		if !ok {
			return sent
		}
		sent[to] = append(sent[to], slices.Concat(head, body))
	}
}

// An undirected offer, made because two members have just been connected, must not end
// a correction. A member that corrects has made offers to all on its way, and stops the
// one it reaches because those in between are covered. Members lost messages by this
// before offers had a direction.
func TestUndirectedOfferDoesNotEndACorrection(t *testing.T) {
	const size = 8
	at := func(rank protocol.Rank) *stream.Member {
		m, err := stream.New(stream.Config{Rank: rank, Size: size, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	root, left, right := at(0), at(1), at(3) // rank 2, between the two, is dead
	if err := root.Write([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	data := frames(root, 1)[1]
	for _, m := range []*stream.Member{left, right} {
		if err := m.Receive(2, 0, data[0]); err != nil {
			t.Fatal(err)
		}
	}
	frames(left, 2)
	now := left.Deadline() // the correction begins
	if sent := frames(left, now); len(sent[0]) == 0 {
		t.Fatalf("rank 1 does not correct to its left: %v", sent)
	}
	right.Up(now, 1)
	for _, offer := range frames(right, now)[1] {
		if err := left.Receive(now, 3, offer); err != nil {
			t.Fatal(err)
		}
	}
	for ; now < 3e8; now += 1e6 { // past the delay of its correction
		if len(frames(left, now)[2]) > 0 {
			return // it goes on to the right, as no correction has come from there
		}
	}
	t.Error("rank 1 has stopped correcting, and no offer reaches rank 2")
}

// Two peers that are down, one behind the other in both directions of a small ring:
// offers past them come to an end.
func TestOffersPastTheDeadEnd(t *testing.T) {
	for size := protocol.Rank(2); size <= 9; size++ {
		m, err := stream.New(stream.Config{Size: size, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write([]byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for now := protocol.Time(1); now < 1e10; now += 1e8 {
			for {
				to, _, _, ok := m.Next(now)
				if !ok {
					break
				}
				m.SendFailed(now, false)
				if sent > 1000 {
					t.Fatalf("%d members: %d frames to the dead, the last to rank %d", size, sent, to)
				}
				sent++
			}
		}
		for peer := range size {
			m.Down(1e10, peer)
		}
	}
}

// A member that a view leaves out while it corrects stops: the ring of that view is
// another, and not its own.
func TestRemovedMemberStopsCorrecting(t *testing.T) {
	const size = 8
	newMember := func(rank protocol.Rank) *stream.Member {
		m, err := stream.New(stream.Config{Rank: rank, Size: size, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	root, m := newMember(0), newMember(1)
	if err := root.Write([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, m, 1, 0, frames(root, 1)[1])
	now := protocol.Time(1)
	for asked := false; !asked && now < 100*millisecond; now += millisecond / 10 {
		for _, frame := range frames(m, now)[2] {
			asked = asked || frame[0] == offerKind && frame[1]&rightwardFlag != 0
		}
	}
	if err := m.Install(now, 1, size, stream.MemberList{{Rank: 0, Incarnation: 1}, {Rank: 2, Incarnation: 1}}); err !=
		nil {
		t.Fatal(err)
	}
	m.Down(now, 2)
	for ; now < 500*millisecond; now += millisecond {
		if sent := frames(m, now); len(sent[3])+len(sent[4]) > 0 {
			t.Fatalf("it goes on to correct: %v", sent)
		}
	}
}
