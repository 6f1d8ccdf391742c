package sequencer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// provider is a member that knows the order, and answers transfers.
type provider struct {
	*Joining
	program []byte
	sent    int // blocks
	most    int // blocks after which it fails
}

// serve answers a request of rank 2, and takes the snapshot when its mark comes.
func (p *provider) serve(a *Ask) Reply {
	p.TransferAsked(1, 7, 2, a.Body)
	casts(p.Joining)
	for _, action := range p.Take() {
		switch b := action.(type) {
		case Capture:
			p.Captured(1, b.ID, p.program, nil)
			return Reply{Body: p.Take()[0].(Answer).Body}
		case Answer:
			p.sent++
			if p.sent > p.most {
				return Reply{Err: errSilent}
			}
			return Reply{Body: b.Body, Err: b.Err}
		}
	}
	return Reply{Err: errSilent}
}

// transferFrom has a member get the state from providers, one after the other, until the last one
// fails or it knows the order.
func transferFrom(j *Joining, providers ...*provider) {
	now := Time(1)
	for _, p := range providers {
		casts(p.Joining)
		for _, a := range asksOf(j.Take()) { // of a provider that is gone
			j.Replied(now, a.Token, Reply{Err: errSilent})
		}
		for from := 0; !j.Knows(); {
			j.from = []int{0, 0, 0}
			if len(j.asks) == 0 {
				j.fetch(now)
			}
			asks := asksOf(j.Take())
			if len(asks) == 0 {
				break
			}
			for i := range asks {
				if reply := p.serve(&asks[i]); reply.Err == nil {
					j.Replied(now, asks[i].Token, reply)
				} else {
					j.from = nil // this provider is gone
					j.Replied(now, asks[i].Token, reply)
					from++
				}
			}
			j.Receive(2, 0, (&frame{kind: kindMark, view: 2, count: j.name}).encode())
			if from > 0 {
				break
			}
		}
	}
}

// A transfer that stops goes on where it was, with another member: only blocks that have changed are
// sent again. Case 68.
func TestTransferResumesWithAnotherMember(t *testing.T) {
	state := bytes.Repeat([]byte("0123456789abcdef"), 40) // 640 bytes
	later := bytes.Clone(state)
	later[33]++
	for _, test := range []struct {
		name    string
		program []byte
		most    int // blocks that the second provider sends
	}{
		{"the same state", state, 40 - 20},
		{"a later state", later, 40 - 20 + 1},
		{"a longer state", append(bytes.Clone(state), "more"...), 40 - 20 + 1},
		{"a shorter state", state[:620], 39 - 20},
	} {
		j := joiner(2, false)
		j.order.config.Block = minBlock
		first := &provider{Joining: joiner(0, true), program: state, most: 20}
		second := &provider{Joining: joiner(0, true), program: test.program, most: 1000}
		transferFrom(j, first)
		have := 0
		for _, b := range j.blocks {
			if b != nil {
				have++
			}
		}
		if j.Knows() || have != 20 {
			t.Fatalf("%s: knows %v, %d blocks", test.name, j.Knows(), have)
		}
		transferFrom(j, second)
		var got []byte
		for _, a := range j.Take() {
			if r, ok := a.(Restore); ok {
				got = r.State
			}
		}
		if !j.Knows() || !bytes.Equal(got, test.program) {
			t.Errorf("%s: knows %v, restored %d bytes", test.name, j.Knows(), len(got))
		}
		if second.sent > test.most {
			t.Errorf("%s: %d blocks were sent again, %d at most", test.name, second.sent, test.most)
		}
		if j.blocks != nil || j.transfer != nil {
			t.Errorf("%s: the blocks are kept", test.name)
		}
	}
}

// A state whose digest is not that of its sender is not restored, and nothing of it is kept.
func TestTransferChecksTheDigest(t *testing.T) {
	j := joiner(2, false)
	j.Tick(1)
	ask := asksOf(j.Take())[0]
	digest := sha256.Sum256([]byte("other"))
	b := append(wire.AppendUint64(nil, 5), digest[:]...)
	b = wire.AppendUint32(wire.AppendBytes(b, AppendState(nil, j.order)), 0)
	j.Replied(2, ask.Token, Reply{Body: b})
	j.Replied(3, asksOf(j.Take())[0].Token, Reply{Body: []byte("state")})
	j.Receive(2, 0, (&frame{kind: kindMark, view: 2, count: j.name}).encode())
	if j.Knows() || j.blocks != nil {
		t.Error("it is restored")
	}
}

// A member of an earlier version sends the whole snapshot in one reply, and gets one so.
func TestTransferWithAnEarlierVersion(t *testing.T) {
	j, leader := joiner(2, false), joiner(0, true)
	casts(leader)
	j.Tick(1)
	j.Replied(2, asksOf(j.Take())[0].Token, Reply{Err: errSilent, NoPart: true})
	ask := asksOf(j.Take())[0]
	if ask.Request != StateRequest || ask.Timeout != transferWait {
		t.Fatalf("%v", ask)
	}
	leader.StateAsked(2, 5, ask.Body)
	mark := casts(leader)[0]
	if c := leader.Take()[0].(Capture); c.ID != 5 {
		t.Fatalf("%v", c)
	}
	leader.Captured(2, 5, []byte("state"), nil)
	j.Replied(3, ask.Token, Reply{Body: leader.Take()[0].(Answer).Body})
	j.Receive(2, 0, mark)
	if !j.Knows() || len(leader.captures) != 0 {
		t.Errorf("knows %v, %d snapshots are kept", j.Knows(), len(leader.captures))
	}
}

// Snapshots for others are bounded: one for each member, some in all, and for a while.
func TestCapturesAreBounded(t *testing.T) {
	leader := joiner(0, true)
	casts(leader)
	id := uint64(0)
	open := func(from int) Answer {
		id++
		leader.TransferAsked(Time(id), id, from,
			wire.AppendUint32(wire.AppendUint32(wire.AppendUint64(nil, 100+id), openingTransfer), minBlock))
		casts(leader)
		for _, a := range leader.Take() {
			if c, ok := a.(Capture); ok {
				leader.Captured(Time(id), c.ID, []byte("state"), nil)
				return leader.Take()[0].(Answer)
			} else if a, ok := a.(Answer); ok {
				return a
			}
		}
		return Answer{}
	}
	for range 3 * maxCaptures {
		if a := open(1); a.Err != nil || len(leader.captures) != 1 {
			t.Fatalf("%v, %d snapshots", a.Err, len(leader.captures))
		}
	}
	for from := 2; from <= maxCaptures; from++ {
		open(from)
	}
	if a := open(99); !errors.Is(a.Err, errTooMany) {
		t.Errorf("one more: %v", a.Err)
	}
	leader.TransferAsked(Time(id)+5, 1000, 1, wire.AppendUint32(wire.AppendUint64(nil, 101), 0))
	if a := leader.Take()[0].(Answer); !errors.Is(a.Err, errNoSnapshot) {
		t.Errorf("of a snapshot that is gone: %v", a)
	}
	leader.TransferAsked(1, 1001, 1, []byte{1})
	if a := leader.Take()[0].(Answer); !errors.Is(a.Err, errMalformed) {
		t.Errorf("malformed: %v", a)
	}
	leader.Tick(leader.Deadline())
	if len(leader.captures) != maxCaptures-1 {
		t.Errorf("%d snapshots are kept", len(leader.captures))
	}
}

// A member that is getting the state says neither that it knows the order nor that it does not: the
// leader must not begin a new one.
func TestMemberThatIsFetchingIsAskedAgain(t *testing.T) {
	j := joiner(2, false)
	j.order.config.Block = minBlock
	transferFrom(j, &provider{Joining: joiner(0, true), program: make([]byte, 100), most: 1000})
	k := joiner(2, false)
	k.transfer = &transfer{}
	k.StateAsked(1, 1, askKnows())
	if a := k.Take()[0].(Answer); !errors.Is(a.Err, errFetching) {
		t.Errorf("%v", a)
	}
}

// A member that leaves waits until one that stays knows the order, if there may be one.
func TestLeavingMemberHandsOver(t *testing.T) {
	no, knows, leaves, none := Reply{}, Reply{Body: []byte{1}}, Reply{Body: []byte{1, 1}},
		Reply{Err: errSilent, NoPart: true}
	for _, test := range []struct {
		name string
		a, b Reply
		goes bool
	}{
		{"one knows it", knows, no, true},
		{"none knows it yet", no, no, false},
		{"one is silent", Reply{Err: errSilent}, none, false},
		{"one leaves, and one may come to know it", leaves, no, false},
		{"all leave", leaves, leaves, true},
		{"no other takes part", none, none, true},
	} {
		j := joiner(1, true)
		j.Leave(1)
		j.Leave(1)
		asks := asksOf(j.Take())
		if len(asks) != 2 {
			t.Fatalf("%s: asks %v", test.name, asks)
		}
		j.Replied(2, asks[0].Token, test.a)
		j.Replied(3, asks[1].Token, test.b)
		over := 0
		for _, a := range j.Take() {
			if _, ok := a.(HandedOver); ok {
				over++
			}
		}
		if over > 1 || over == 1 != test.goes {
			t.Errorf("%s: goes %d times", test.name, over)
		}
		if due := j.Deadline(); !test.goes && due != 3+heirPause {
			t.Errorf("%s: asks again at %d", test.name, due)
		} else if !test.goes {
			j.Tick(due)
			if len(asksOf(j.Take())) != 2 {
				t.Errorf("%s: does not ask again", test.name)
			}
		}
	}
	j := joiner(1, true)
	j.Leave(1)
	j.Take()
	j.StateAsked(1, 1, askKnows())
	if a := j.Take()[0].(Answer); len(a.Body) != 2 {
		t.Errorf("it does not say that it leaves: %v", a)
	}
	if j := joiner(1, false); true {
		j.Leave(1)
		if len(j.Take()) != 1 {
			t.Error("a member that does not know the order waits")
		}
	}
}
