package sequencer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

var errSilent = errors.New("silent")

// joiner returns a member of a view of three that has another incarnation than the first.
func joiner(rank int, knows bool) *Joining {
	members := []Member{{0, 2}, {1, 2}, {2, 2}}
	m := New(Config{Self: members[rank], MaxBatch: 100})
	m.View(2, members, len(members))
	bits := uint64(0)
	j := NewJoining(m, knows, func() uint64 { bits += 2; return bits })
	j.View(2, members)
	return j
}

// asksOf returns the requests among the actions.
func asksOf(actions []Action) (asks []Ask) {
	for _, a := range actions {
		if ask, ok := a.(Ask); ok {
			asks = append(asks, ask)
		}
	}
	return asks
}

// casts broadcasts what a leader has to tell, and gives it to itself.
func casts(j *Joining) (bodies [][]byte) {
	for view, body, ok := j.order.NextCast(); ok; view, body, ok = j.order.NextCast() {
		j.order.CastDone(view, false)
		bodies = append(bodies, body)
		j.Receive(view, j.order.config.Self.Rank, body)
	}
	return bodies
}

// A leader that does not know the order begins anew only if all members say that they do not know
// it either, or take no part. It asks one that does.
func TestLeaderBeginsAnewIfNoMemberKnows(t *testing.T) {
	no, yes := Reply{}, Reply{Body: []byte{1}}
	for _, test := range []struct {
		name         string
		a, b         Reply
		anew, fetchs bool
	}{
		{"none knows", no, no, true, false},
		{"one takes no part", Reply{Err: errSilent, NoPart: true}, no, true, false},
		{"one is silent", no, Reply{Err: errSilent}, false, false},
		{"one knows, one is silent", yes, Reply{Err: errSilent}, false, true},
	} {
		j := joiner(0, false)
		j.Tick(1)
		asks := asksOf(j.Take())
		if len(asks) != 2 || asks[0].To != 1 || asks[1].To != 2 {
			t.Fatalf("%s: asks %v", test.name, asks)
		}
		j.Replied(2, asks[0].Token, test.a)
		j.Replied(2, asks[0].Token, test.a) // twice is once
		j.Replied(3, asks[1].Token, test.b)
		if fetched := asksOf(j.Take()); len(fetched) > 0 != test.fetchs || test.fetchs && fetched[0].To != 1 {
			t.Errorf("%s: asks %v", test.name, fetched)
		}
		if test.anew && j.Deadline() != 3+stateWait {
			t.Errorf("%s: looks again at %d", test.name, j.Deadline())
		}
		casts(j)
		if j.Knows() != test.anew {
			t.Errorf("%s: knows %v", test.name, j.Knows())
		}
		if !test.anew && !test.fetchs && j.Deadline() != 3+minPause {
			t.Errorf("%s: rests until %d", test.name, j.Deadline())
		}
	}
}

// A leader to which something was forwarded does not begin anew: its origin knows the order.
func TestForwardedMessageKeepsTheOrder(t *testing.T) {
	j, other := joiner(0, false), joiner(1, true)
	other.order.Begin(Mark{2, Fresh}, 0)
	other.order.Submit("t", []byte("x"))
	f, _ := other.order.NextForward()
	if err := j.order.Accept(1, f.Body); err != nil {
		t.Fatal(err)
	}
	if err := j.order.AcceptMark(Mark{2, Fresh}); !errors.Is(err, errKnown) {
		t.Errorf("%v", err)
	}
	if err := j.order.AcceptMark(Mark{2, 7}); err != nil {
		t.Errorf("%v", err)
	}
}

// A member that has come to know an order meanwhile begins anew with the others, and its messages
// that have no number are the first ones.
func TestAllBeginAnewAtAFreshMark(t *testing.T) {
	j := joiner(0, true)
	say := func(text string) []Action {
		j.order.Submit("t", []byte(text))
		if f, ok := j.order.NextForward(); ok {
			_ = j.order.Accept(0, f.Body)
		}
		casts(j)
		return j.Take()
	}
	casts(j)
	if d := say("old"); len(d) != 1 || d[0].(Deliver).Messages[0].Number != 1 {
		t.Fatalf("%v", d)
	}
	j.order.Submit("t", []byte("waits"))
	j.Receive(2, 0, (&frame{kind: kindMark, view: 2, count: Fresh}).encode())
	if _, ok := j.Take()[0].(Reset); !ok {
		t.Fatal("not begun anew")
	}
	if d := say("new"); len(d) != 1 || string(d[0].(Deliver).Messages[0].Data) != "waits" ||
		d[0].(Deliver).Messages[1].Number != 2 {
		t.Errorf("%v", d)
	}
}

// A joiner has the order when both the mark and the snapshot are there, in either order, and then
// delivers what came behind the mark. Marks of others, and of other views, are not its own.
func TestJoinerGoesOnBehindItsMark(t *testing.T) {
	for _, markFirst := range []bool{true, false} {
		leader, j := joiner(0, true), joiner(2, false)
		casts(leader)
		j.Tick(1)
		ask := asksOf(j.Take())[0]
		d := wire.NewDecoder(ask.Body)
		name := d.Uint64()
		if ask.Request != TransferRequest {
			t.Fatalf("asks %v", ask)
		}
		leader.TransferAsked(1, 9, 2, ask.Body)
		_ = leader.order.AcceptMark(Mark{2, name + 1}) // another joiner's
		marks := casts(leader)
		captured := leader.Take()[0].(Capture)
		if captured.ID != 9 {
			t.Fatalf("%v", captured)
		}
		leader.Captured(1, 9, []byte("state"), nil)
		reply := func() {
			j.Replied(2, ask.Token, Reply{Body: leader.Take()[0].(Answer).Body})
			block := asksOf(j.Take())[0]
			leader.TransferAsked(2, 10, 2, block.Body)
			j.Replied(2, block.Token, Reply{Body: leader.Take()[0].(Answer).Body})
		}
		if !markFirst {
			reply()
		}
		j.Receive(2, 0, marks[1])
		j.Receive(1, 0, marks[0])
		if j.leader >= 0 {
			t.Fatal("a mark of another")
		}
		j.Receive(2, 0, marks[0])
		if markFirst {
			leader.order.Submit("t", []byte("behind"))
			f, _ := leader.order.NextForward()
			_ = leader.order.Accept(0, f.Body)
			j.Receive(2, 0, casts(leader)[0])
			reply()
		}
		got := j.Take()
		if r, ok := got[0].(Restore); !ok || r.Err != nil || string(r.State) != "state" || !j.Knows() {
			t.Fatalf("%v", got)
		}
		if markFirst && string(got[1].(Deliver).Messages[0].Data) != "behind" {
			t.Errorf("%v", got)
		}
		if _, place, _ := j.order.Place(); place != 0 {
			t.Errorf("follows %d", place)
		}
		if j.held != nil || j.snapshot != nil || j.leader >= 0 {
			t.Errorf("keeps %+v", j.entry)
		}
	}
}

// What is kept while the snapshot is on its way is bounded: then all begins again.
func TestHeldMessagesAreBounded(t *testing.T) {
	j := joiner(2, false)
	j.Tick(1)
	ask := asksOf(j.Take())[0]
	j.Receive(2, 0, (&frame{kind: kindMark, view: 2, count: j.name}).encode())
	name := j.name
	part := bytes.Repeat([]byte{byte(kindNumber)}, maxHeld/2)
	j.Receive(2, 0, part)
	j.Receive(2, 0, part)
	if j.leader < 0 {
		t.Fatal("given up at the limit")
	}
	j.Receive(2, 0, part)
	if j.leader >= 0 || j.held != nil {
		t.Fatal("more is kept")
	}
	j.Replied(2, ask.Token, Reply{Body: []byte("late")})
	if next := asksOf(j.Take()); j.Knows() || len(next) != 1 || j.name == name {
		t.Errorf("knows %v, asks %v", j.Knows(), next)
	}
}

// Requests for the state are answered as they should be, bounded in number and in time.
func TestStateIsAsked(t *testing.T) {
	answer := func(j *Joining, body []byte) Answer {
		j.StateAsked(1, 1, body)
		return j.Take()[0].(Answer)
	}
	name := func(n uint64) []byte { return wire.AppendUint64(nil, n) }
	if a := answer(joiner(1, false), name(7)); a.Err != nil || a.Body != nil {
		t.Errorf("of a member that does not know it: %v", a)
	}
	j := joiner(1, true)
	j.order.Begin(Mark{2, Fresh}, 0)
	if a := answer(j, name(0)); a.Err != nil || len(a.Body) != 1 {
		t.Errorf("of one that does: %v", a)
	}
	if a := answer(j, []byte{1}); !errors.Is(a.Err, errMalformed) || j.MarkAsked([]byte{1}) != errMalformed {
		t.Errorf("malformed: %v", a)
	}
	for i := range uint64(maxAsked) {
		j.StateAsked(Time(1+i), i, name(1+i))
	}
	asks := asksOf(j.Take())
	if len(asks) != maxAsked || asks[0].To != 0 || asks[0].Request != MarkRequest {
		t.Fatalf("%d asks", len(asks))
	}
	if a := answer(j, name(99)); !errors.Is(a.Err, errTooMany) {
		t.Errorf("one more: %v", a)
	}
	j.Replied(2, asks[3].Token, Reply{Err: ErrNotLeader})
	if a := j.Take(); len(a) != 1 || a[0].(Answer).ID != 3 || j.Canceled(3) || !j.Canceled(4) {
		t.Errorf("refused: %v", a)
	}
	if due := j.Deadline(); due != 1+markRetry {
		t.Errorf("due %d", due)
	}
	j.Tick(1 + markRetry)
	if len(asksOf(j.Take())) != 1 {
		t.Error("the mark is not asked for again")
	}
	j.Tick(maxAsked - 1 + markWait)
	refused := 0
	for _, a := range j.Take() {
		if a, ok := a.(Answer); ok && errors.Is(a.Err, errNoMark) {
			refused++
		}
	}
	if refused != maxAsked-3 {
		t.Errorf("%d answers in time", refused)
	}
	j.Canceled(maxAsked - 1)
	if j.Deadline() != protocol.Never {
		t.Errorf("due %d", j.Deadline())
	}
}

// Rounds come at longer and longer intervals, up to a limit, and not without a quorum.
func TestRoundsBackOff(t *testing.T) {
	j := joiner(1, false)
	j.View(2, nil)
	for range 20 {
		j.Tick(j.Deadline())
	}
	if before := j.round.due; len(j.Take()) > 0 {
		t.Error("it asks without a quorum")
	} else {
		j.Tick(before)
		if j.round.due-before != maxPause {
			t.Errorf("a pause of %d", j.round.due-before)
		}
	}
}

// What comes behind a gap in the leader's broadcasts is not delivered, until another view begins,
// and a gap in what is kept behind a mark has all begin again. Gaps of others do not matter.
func TestNothingIsDeliveredBehindAGap(t *testing.T) {
	leader, j := joiner(0, true), joiner(2, true)
	say := func(text string) []byte {
		leader.order.Submit("t", []byte(text))
		f, _ := leader.order.NextForward()
		_ = leader.order.Accept(0, f.Body)
		return casts(leader)[0]
	}
	j.Receive(2, 0, casts(leader)[0])
	j.Lost(2, 1)
	j.Lost(1, 0)
	j.Receive(2, 0, say("a"))
	if len(j.Take()) != 1 {
		t.Error("a gap of another, or of another view, counts")
	}
	j.Lost(2, 0)
	j.Receive(2, 0, say("c"))
	if len(j.Take()) != 0 {
		t.Error("delivered behind a gap")
	}
	leader.order.View(3, leader.members, len(leader.members))
	begin := casts(leader)[0]
	j.Receive(3, 0, begin)
	if _, follows, _ := j.order.Place(); follows != 0 {
		t.Errorf("follows %d in the next view", follows)
	}
	k := joiner(2, false)
	k.Tick(1)
	k.Receive(2, 0, (&frame{kind: kindMark, view: 2, count: k.name}).encode())
	k.Lost(2, 0)
	if k.leader >= 0 {
		t.Error("a gap is kept")
	}
}
