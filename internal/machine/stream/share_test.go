package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A frozen member keeps what arrives to itself: a root that has installed the next view
// may have sent it, and a member that is not in that view would take it for a message of
// the present one. Once the view is installed, it is forwarded.
func TestFrozenMemberPassesNothingOnOfTheNextView(t *testing.T) {
	members := group(t, Config{}, 4)
	root := members[0]
	var relay *Member
	for _, m := range members[1:] {
		if f, err := m.open(0, 1); err == nil && len(f.children) > 0 {
			relay = m
		}
	}
	if relay == nil {
		t.Fatal("no member relays")
	}
	cut := root.Freeze()
	relay.Freeze()
	root.Flush(1, cut)
	if err := root.Install(1, 2, 4, root.roster.members); err != nil {
		t.Fatal(err)
	}
	if err := root.Write([]byte("of view 2"), 0); err != nil {
		t.Fatal(err)
	}
	for _, f := range drain(root, 1) {
		if f.to == relay.config.Rank {
			_ = relay.Receive(1, 0, f.frame)
		}
	}
	request := frame{kind: request, incarnation: 1, last: 1}
	_ = relay.Receive(1, 3, request.append(nil))
	relay.Up(1, 3)
	for _, f := range drain(relay, 1+second) {
		if fr, _ := parse(f.frame); fr.carriesSegment() || fr.kind == offer && fr.first > 0 {
			t.Errorf("a frozen member passes on to rank %d: %+v", f.to, fr)
		}
	}
	relay.Flush(1, cut)
	if err := relay.Install(1+second, 2, 4, relay.roster.members); err != nil {
		t.Fatal(err)
	}
	forwarded := 0
	for _, f := range drain(relay, 1+second) {
		if fr, _ := parse(f.frame); fr.kind == data {
			forwarded++
		}
	}
	if forwarded == 0 {
		t.Error("what arrived while the member was frozen is never forwarded")
	}
}

const second = 1000 * millisecond

// What members that do not answer may lack is kept, but not without bound.
func TestWhatIsKeptForTheSilentIsBounded(t *testing.T) {
	const keep, size = 10_000, 1000
	m := group(t, Config{KeepBytes: keep}, 2)[1]
	for number := range uint64(20 * keep / size) {
		receiveFrom(t, m, 1, 0, number, uint32(number), size)
	}
	if kept := m.flows[0].store.bytes; kept <= holdFactor*keep || kept > (holdFactor+1)*keep {
		t.Errorf("%d bytes are kept", kept)
	}
}

// A stream keeps KeepBytes to the byte, and what is trimmed is the oldest.
func TestKeptToTheByte(t *testing.T) {
	const size = 1000 + headSize + messagesSize + unacceptedSize + segmentCost
	for keep, want := range map[int]uint64{10 * size: 0, 10*size - 1: 1} {
		m := group(t, Config{KeepBytes: keep}, 2)[1]
		for number := range uint64(10) {
			receiveFrom(t, m, 1, 0, number, 0, 1000)
		}
		if low := m.flows[0].store.low; low != want {
			t.Errorf("of %d bytes, %d are kept, from segment %d on", 10*size, keep, low)
		}
	}
}

// An acknowledgment speaks for the members below its sender in one view. In another one,
// other members are below it: a root that is behind must not take it for those of its own.
func TestAcknowledgmentsOfAnotherViewDoNotCount(t *testing.T) {
	members := group(t, Config{}, 2)
	root, other := members[0], members[1]
	if err := root.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	pass := func(from, to *Member) {
		for _, f := range drain(from, 1) {
			_ = to.Receive(1, from.config.Rank, f.frame)
		}
	}
	pass(root, other)
	other.Flush(1, other.Freeze())
	if err := other.Install(1, 2, 2, other.roster.members); err != nil {
		t.Fatal(err)
	}
	upTo := root.Poll(1)
	pass(root, other)
	pass(other, root)
	if root.Stable() >= upTo {
		t.Error("the root of view 1 counts an acknowledgment of view 2")
	}
	root.Flush(1, root.Freeze())
	if err := root.Install(1, 2, 2, root.roster.members); err != nil {
		t.Fatal(err)
	}
	pass(root, other)
	pass(other, root)
	if root.Stable() < upTo {
		t.Error("in the same view the acknowledgment does not count either")
	}
}

// A process that has left with the view gets what was sent before it, and nothing since.
// One that has left with an earlier view gets nothing: it would deliver what was sent since
// in its own view, which has ended.
func TestProcessOutsideTheViewGetsNothingOfIt(t *testing.T) {
	members := group(t, Config{}, 3)
	root := members[0]
	say := func() {
		if err := root.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		drain(root, 1)
	}
	say()
	root.Flush(1, root.Freeze())
	if err := root.Install(1, 2, 3, MemberList{{0, 1}, {1, 1}}); err != nil {
		t.Fatal(err)
	}
	say()
	request := frame{kind: request, incarnation: 1, last: 2}
	answers := func(from protocol.Rank) (repairs int) {
		drain(root, 1)
		_ = root.Receive(1, from, request.append(nil))
		for _, f := range drain(root, 1) {
			if fr, _ := parse(f.frame); fr.kind == repair {
				repairs++
			}
		}
		return repairs
	}
	if member, outside := answers(1), answers(2); member != 2 || outside != 1 {
		t.Errorf("%d repairs for a member and %d for a process outside, want 2 and 1", member, outside)
	}
	root.Flush(1, root.Freeze())
	if err := root.Install(1, 3, 3, MemberList{{0, 1}, {1, 1}}); err != nil {
		t.Fatal(err)
	}
	if member, outside := answers(1), answers(2); member != 2 || outside != 0 {
		t.Errorf("a view later, %d repairs for a member and %d for a process outside, want 2 and 0", member, outside)
	}
}
