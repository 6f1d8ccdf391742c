package sequencer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// both are two members of view 1, of which the first leads.
var both = []Member{{0, 1}, {1, 1}}

// newPair returns the leader and the other member, in a view that has begun.
func newPair(t *testing.T, safe bool, batch int) (leader, member *Machine) {
	t.Helper()
	leader, member = New(Config{Self: both[0], Safe: safe, MaxBatch: batch}),
		New(Config{Self: both[1], Safe: safe, MaxBatch: batch})
	leader.View(1, both, 2)
	member.View(1, both, 2)
	broadcast(t, leader, 1, leader, member)
	return leader, member
}

// broadcast has the leader broadcast its next frame, and returns what the last receiver delivers.
func broadcast(t *testing.T, leader *Machine, view uint64, receivers ...*Machine) (delivered []Message) {
	t.Helper()
	in, body, ok := leader.NextCast()
	if !ok || in != view {
		t.Fatalf("no frame in view %d: %d", view, in)
	}
	leader.CastDone(view, false)
	for _, m := range receivers {
		var err error
		delivered, err = m.Receive(view, leader.config.Self.Rank, body)
		if err != nil {
			t.Fatal(err)
		}
	}
	return delivered
}

// idle fails if a machine has something to send.
func idle(t *testing.T, what string, m *Machine) {
	t.Helper()
	if _, _, ok := m.NextCast(); ok {
		t.Errorf("%s: it broadcasts", what)
	}
	if _, ok := m.NextForward(); ok {
		t.Errorf("%s: it forwards", what)
	}
	if _, _, ok := m.NextAck(); ok {
		t.Errorf("%s: it acknowledges", what)
	}
}

// forward brings the next frame of a member to the leader.
func forward(t *testing.T, from, leader *Machine) Forward {
	t.Helper()
	f, ok := from.NextForward()
	if !ok {
		t.Fatal("nothing to forward")
	}
	if err := leader.Accept(from.config.Self.Rank, f.Body); err != nil {
		t.Fatal(err)
	}
	return f
}

// What is pending is counted to the byte until it is numbered, and forwarded once if nothing
// fails. What fails in an earlier view is forwarded already.
func TestPendingAndResent(t *testing.T) {
	leader, member := newPair(t, false, 1000)
	member.Submit("topic", []byte("data"))
	member.Submit("", []byte("more data"))
	if want := 8 + 9 + 8 + 9; member.Pending() != want {
		t.Errorf("%d bytes are pending, want %d", member.Pending(), want)
	}
	f := forward(t, member, leader)
	idle(t, "all is forwarded", member)
	member.ForwardFailed(f.View - 1)
	idle(t, "an earlier view has failed", member)
	if leader.Queued() == 0 || member.Resent() != 0 {
		t.Errorf("%d bytes are queued, %d messages were sent again", leader.Queued(), member.Resent())
	}
	member.ForwardFailed(f.View)
	member.Submit("", []byte("third"))
	forward(t, member, leader)
	if member.Resent() != 2 {
		t.Errorf("%d messages were sent again", member.Resent())
	}
	if got := broadcast(t, leader, 1, leader, member); len(got) != 3 || member.Pending() != 0 || leader.Queued() != 0 {
		t.Errorf("%d messages, %d bytes pending, %d queued", len(got), member.Pending(), leader.Queued())
	}
	idle(t, "all is numbered", leader)
	idle(t, "all is numbered", member)
}

// A frame has as many bytes as it may, and one message more.
func TestBatches(t *testing.T) {
	empty := len(appendBatch(nil, both[1], 1))
	const most = 100
	for size, want := range map[int]int{most - empty - 8: 1, most - empty - 9: 2} {
		// a first message that fills the frame, or leaves a byte
		leader, member := newPair(t, false, most)
		member.Submit("", make([]byte, size))
		member.Submit("", nil)
		f := forward(t, member, leader)
		d, err := decode(f.Body)
		if err != nil || len(d.batches[0].bodies) != want {
			t.Errorf("%d messages in a frame after one of %d bytes, want %d: %v", len(d.batches[0].bodies), size, want, err)
		}
		if n := leader.Queued(); want == 1 && n != most {
			t.Errorf("%d bytes are queued", n)
		}
		for len(member.pending) > member.forwarded {
			forward(t, member, leader)
		}
		_, body, _ := leader.NextCast()
		if d, err := decode(body); err != nil || len(d.batches) != 1 {
			t.Errorf("%d batches in a frame: %v", len(d.batches), err)
		}
		member.ForwardFailed(1)
		if member.Resent() != 0 {
			t.Errorf("%d messages were sent again", member.Resent())
		}
		for len(member.pending) > member.forwarded {
			forward(t, member, leader)
		}
		if member.Resent() != 2 {
			t.Errorf("%d messages were sent again", member.Resent())
		}
	}
}

// Members follow the leader of the view that has begun, and no other; what is said twice, late or
// by another member changes nothing.
func TestOnlyTheLeaderNumbers(t *testing.T) {
	leader, member := newPair(t, false, 1000)
	member.Submit("t", []byte("data"))
	f := forward(t, member, leader)
	_, number, _ := leader.NextCast()
	before := fmt.Sprintf("%+v %+v", member.order, member.own)
	for name, c := range map[string]struct {
		view uint64
		from int
		body []byte
	}{
		"another member numbers":  {1, 1, number},
		"a frame of another view": {2, 0, number},
		"a view that has not begun": {
			2, 0,
			(&frame{
				kind: kindNumber, view: 2,
				batches: []batch{{raw: appendBody(appendBatch(nil, both[1], 1), "", nil)}},
			}).encode(),
		},
		"another member begins the view":   {1, 1, (&frame{kind: kindBegin, view: 1, members: both}).encode()},
		"the leader begins the view again": {1, 0, (&frame{kind: kindBegin, view: 1, members: both}).encode()},
		"a forward to all":                 {1, 0, f.Body},
		"an acknowledgment to all":         {1, 0, (&frame{kind: kindAck, view: 1, count: 9}).encode()},
	} {
		if got, err := member.Receive(c.view, c.from, c.body); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if after := fmt.Sprintf("%+v %+v", member.order, member.own); after != before {
			t.Errorf("%s:\n%s\n%s", name, before, after)
		}
	}
	if got, err := member.Receive(1, 0, number); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// A leader takes what members forward to it in its view, and nothing else.
func TestOnlyMembersForward(t *testing.T) {
	leader, member := newPair(t, true, 1000)
	one := batch{raw: appendBody(appendBatch(nil, both[1], 1), "t", []byte("data"))}
	raw := func(f frame) []byte { return f.encode() }
	for name, c := range map[string]struct {
		to   *Machine
		from int
		body []byte
		err  error
	}{
		"to another member":  {member, 1, raw(frame{kind: kindForward, view: 1, batches: []batch{one}}), ErrNotLeader},
		"to nobody":          {member, 1, raw(frame{kind: kindForward, batches: []batch{one}}), ErrNotLeader},
		"of an earlier view": {leader, 1, raw(frame{kind: kindForward, view: 0, batches: []batch{one}}), ErrNotLeader},
		"two batches":        {leader, 1, raw(frame{kind: kindForward, view: 1, batches: []batch{one, one}}), ErrFrame},
		"no batch":           {leader, 1, raw(frame{kind: kindForward, view: 1}), ErrFrame},
		"a number":           {leader, 1, raw(frame{kind: kindNumber, view: 1, batches: []batch{one}}), ErrFrame},
		"of another member":  {leader, 0, raw(frame{kind: kindForward, view: 1, batches: []batch{one}}), ErrFrame},
		"of no member": {
			leader, 5,
			raw(frame{kind: kindForward, view: 1, batches: []batch{{raw: appendBatch(nil, Member{5, 1}, 1)}}}), ErrFrame,
		},
		"of an earlier process": {
			leader, 1,
			raw(frame{kind: kindForward, view: 1, batches: []batch{{raw: appendBatch(nil, Member{1, 0}, 1)}}}), ErrFrame,
		},
		"a batch cut short": {
			leader, 1,
			raw(frame{kind: kindForward, view: 1, batches: []batch{{raw: one.raw[:len(one.raw)-1]}}}), ErrFrame,
		},
		"no frame":        {leader, 1, nil, ErrFrame},
		"an unknown kind": {leader, 1, raw(frame{kind: kindAck + 1, view: 1}), ErrFrame},
		"a byte too many": {leader, 1, append(raw(frame{kind: kindAck, view: 1}), 0), ErrFrame},
	} {
		if err := c.to.Accept(c.from, c.body); !errors.Is(err, c.err) || c.to.Queued() > 0 {
			t.Errorf("%s: %v, %d bytes are queued", name, err, c.to.Queued())
		}
	}
}

// With Safe a message is delivered when a majority has it, by acknowledgments of this view.
func TestOnlyAcknowledgmentsCount(t *testing.T) {
	leader, member := newPair(t, true, 1000)
	leader.Submit("t", []byte("data"))
	forward(t, leader, leader)
	if got := broadcast(t, leader, 1, leader, member); len(got) > 0 {
		t.Fatalf("%v", got)
	}
	idle(t, "no acknowledgment", leader)
	for name, f := range map[string]frame{
		"of another view": {kind: kindAck, view: 2, count: 1},
		"of no view":      {kind: kindAck, count: 1},
		"a number":        {kind: kindNumber, view: 1, count: 1},
	} {
		if err := leader.Acknowledge(1, f.encode()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := member.Acknowledge(0, f.encode()); err != nil { // it leads nothing
			t.Errorf("%s: %v", name, err)
		}
		idle(t, name, leader)
	}
	if err := leader.Acknowledge(1, []byte{9}); !errors.Is(err, ErrFrame) {
		t.Errorf("no frame: %v", err)
	}
	to, body, ok := member.NextAck()
	if !ok || to != 0 {
		t.Fatalf("no acknowledgment: %d", to)
	}
	idle(t, "all is acknowledged", member)
	if err := leader.Acknowledge(1, body); err != nil {
		t.Fatal(err)
	}
	if got := broadcast(t, leader, 1, leader, member); len(got) != 1 {
		t.Errorf("%v", got)
	}
	idle(t, "all is committed", leader)
	member.AckFailed()
	if _, _, ok := member.NextAck(); !ok {
		t.Error("an acknowledgment that has failed is not sent again")
	}
}

// Without Safe nothing is acknowledged, and a group of one has nothing to say after a message.
func TestNothingIsAcknowledgedWithoutSafe(t *testing.T) {
	alone := New(Config{Self: both[0], MaxBatch: 100})
	idle(t, "no view", alone)
	alone.View(1, both[:1], 1)
	broadcast(t, alone, 1, alone)
	alone.Submit("t", []byte("data"))
	forward(t, alone, alone)
	if got := broadcast(t, alone, 1, alone); len(got) != 1 {
		t.Errorf("%v", got)
	}
	idle(t, "all is delivered", alone)
	leader, member := newPair(t, false, 100)
	leader.Submit("t", []byte("data"))
	forward(t, leader, leader)
	broadcast(t, leader, 1, leader, member)
	idle(t, "without Safe", member)
	safe := New(Config{Self: both[1], Safe: true})
	safe.numbered = 1 // restored, and no leader is known
	idle(t, "without a leader", safe)
}

// A view is told once; an earlier one, or one without members, leads to nothing. Members that
// have gone are forgotten.
func TestViewsComeOnce(t *testing.T) {
	leader, member := newPair(t, false, 1000)
	member.Submit("t", []byte("data"))
	forward(t, member, leader)
	leader.View(1, both, 2)
	leader.View(0, nil, 0)
	if leader.Queued() == 0 {
		t.Error("a view that is told again has dropped what was forwarded")
	}
	if got := broadcast(t, leader, 1, leader, member); len(got) != 1 {
		t.Errorf("%v", got)
	}
	leader.View(2, both[:1], 1)
	broadcast(t, leader, 2, leader)
	if _, kept := leader.last[both[1]]; kept {
		t.Error("a member that has gone is remembered")
	}
	leader.View(3, nil, 0)
	idle(t, "no member", leader)
}

// Frames that are cut short or continued are refused, whichever they are.
func TestFramesCutShort(t *testing.T) {
	one := batch{raw: appendBody(appendBatch(nil, both[1], 1), "topic", []byte("data"))}
	for _, f := range []frame{
		{kind: kindBegin, view: 3, members: both},
		{kind: kindNumber, view: 3, count: 2, batches: []batch{one, one}},
		{kind: kindForward, view: 3, batches: []batch{one}},
		{kind: kindAck, view: 3, count: 2},
	} {
		b := f.encode()
		if len(f.batches) > 0 {
			f.batches[0].raw = one.raw[:len(one.raw)-1]
			if _, err := decode(f.encode()); !errors.Is(err, ErrFrame) {
				t.Errorf("kind %d with a batch that is cut short: %v", f.kind, err)
			}
		}
		whole := []int{9 + 8, 9 + 8 + 4 + len(one.raw)} // frames with fewer batches
		for n := range b {
			if _, err := decode(b[:n]); !errors.Is(err, ErrFrame) && !slices.Contains(whole, n) {
				t.Errorf("kind %d: the first %d of %d bytes: %v", f.kind, n, len(b), err)
			}
		}
		if _, err := decode(wire.AppendUint8(slices.Clone(b), 0)); !errors.Is(err, ErrFrame) {
			t.Errorf("kind %d and a byte more: %v", f.kind, err)
		}
	}
}
