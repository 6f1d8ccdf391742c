package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// check compares an endpoint's counts and timers with what it has queued.
func (e *Endpoint) check() error {
	for _, ch := range e.channels {
		if ch == nil {
			continue
		}
		o := &ch.out
		queued, inFlight := 0, 0
		for i := range o.queue.Len() {
			size := o.queue.At(i).size()
			queued += size
			if o.base+uint64(i) < o.next {
				inFlight += size
			}
		}
		waits := o.base < o.next || o.blocked
		switch {
		case o.bytes != queued || o.inFlight != inFlight || o.next < o.base:
			return fmt.Errorf("to %d: %d bytes and %d in flight, counted %d and %d", ch.peer, queued, inFlight, o.bytes,
				o.inFlight)
		case waits && o.timeoutAt == protocol.Never:
			return fmt.Errorf("to %d: waits for ever", ch.peer)
		case e.due > min(o.timeoutAt, ch.control.ackAt):
			return fmt.Errorf("to %d: nothing happens before %d", ch.peer, e.due)
		}
	}
	return nil
}

// newEndpoint returns an endpoint of a view in which every incarnation is 1.
func newEndpoint(t *testing.T, rank protocol.Rank, size int, c Config) *Endpoint {
	t.Helper()
	c.Rank = rank
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e.Install(0, view(1, slices.Repeat([]uint64{1}, size)...))
	return e
}

// packet is a frame as it travels.
type packet struct {
	to protocol.Rank
	frame
	raw []byte
}

// frames returns what an endpoint sends now.
func frames(t *testing.T, e *Endpoint, now protocol.Time) (all []packet) {
	t.Helper()
	for to, head, body, ok := e.Next(now); ok; to, head, body, ok = e.Next(now) {
		p := packet{to: to, raw: slices.Concat(head, body)}
		var err error
		p.frame, err = parse(p.raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// give has frames arrive.
func give(t *testing.T, to *Endpoint, now protocol.Time, from protocol.Rank, all ...packet) {
	t.Helper()
	for _, p := range all {
		if err := to.Receive(now, from, p.raw, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func kinds(all []packet) (list []kind) {
	for _, p := range all {
		list = append(list, p.kind)
	}
	return list
}

func want(t *testing.T, what string, all []packet, list ...kind) {
	t.Helper()
	if !slices.Equal(kinds(all), list) {
		t.Errorf("%s: frames %v, want %v", what, kinds(all), list)
	}
}

func send(t *testing.T, e *Endpoint, to protocol.Rank, size int) {
	t.Helper()
	if err := e.Send(to, nil, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
}

// A peer that acknowledges nothing new is polled, less and less often, and gets nothing twice
// before it answers. What it repeats changes nothing. After its answer all begins anew.
func TestSilentPeerIsPolled(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	var now protocol.Time
	for range 2 {
		send(t, a, 1, 10)
		lost := frames(t, a, now)
		want(t, "a message", lost, data)
		last, gap := now, protocol.Time(0)
		var polled []packet
		for range 12 {
			now = a.Deadline()
			polled = frames(t, a, now)
			want(t, "silence", polled, poll)
			before := gap
			gap, last = now-last, now
			if before == 0 && gap != minRTO || gap < before || before > 0 && gap > 2*before || gap > maxRTO {
				t.Fatalf("polled after %d, then after %d", before, gap)
			}
			give(t, a, now, 1, packet{raw: (&frame{kind: ack, from: 1, to: 1, next: b.channel(0).in.next}).appendHead(nil)})
			want(t, "an acknowledgment of nothing", frames(t, a, now))
		}
		if gap != maxRTO {
			t.Errorf("polled every %d in the end, not %d", gap, maxRTO)
		}
		give(t, b, now, 0, polled...)
		reply := frames(t, b, now)
		want(t, "a poll", reply, pollReply)
		give(t, a, now, 1, reply...)
		again := frames(t, a, now)
		want(t, "a reply that lacks a segment", again, data)
		give(t, b, now, 0, again...)
		now = b.Deadline()
		give(t, a, now, 1, frames(t, b, now)...)
		if timer := a.channel(1).out.timeoutAt; !a.Idle() || timer != protocol.Never {
			t.Errorf("idle: %v, a timer at %d", a.Idle(), timer)
		}
	}
}

// A peer that acknowledges something within each timeout is not polled, however long it takes.
func TestProgressIsNotPolled(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	var earlier []packet
	for now := protocol.Time(0); now < 10*minRTO; now += minRTO / 2 {
		send(t, a, 1, 10)
		give(t, b, now, 0, earlier...)
		b.FlushAcks()
		give(t, a, now, 1, frames(t, b, now)...)
		earlier = frames(t, a, now)
		want(t, "a message", earlier, data)
	}
}

// Connections and free queues are used at once, without a timer; and only if there is a need.
func TestEventsActAtOnce(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	a.Up(0, 1) // before anything was sent
	a.Writable(0, 1)
	send(t, a, 1, 10)
	_, _, _, _ = a.Next(0)
	a.SendFailed(0, true)
	want(t, "a full queue", frames(t, a, 0))
	a.Writable(0, 1)
	sent := frames(t, a, 0)
	want(t, "a queue that is free", sent, data)
	a.Up(0, 1)
	want(t, "a new connection", frames(t, a, 0), poll)
	give(t, b, 0, 0, sent...)
	want(t, "a message", frames(t, b, 0))
	b.FlushAcks()
	flushed := frames(t, b, 0)
	want(t, "an acknowledgment that is due", flushed, ack)
	b.FlushAcks()
	want(t, "nothing to acknowledge", frames(t, b, 0))
	give(t, a, 0, 1, flushed...)
	a.Up(0, 1)
	want(t, "a new connection, and nothing in flight", frames(t, a, 0))
}

// A gap is reported at once, and once; what is lost comes again without a timer.
func TestGapIsReportedOnce(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	for round := range 3 {
		for range 4 {
			send(t, a, 1, 10)
		}
		sent := frames(t, a, 0)
		want(t, "messages", sent, data, data, data, data)
		give(t, b, 0, 0, sent[0])
		want(t, "a segment", frames(t, b, 0))
		give(t, b, 0, 0, sent[2])
		report := frames(t, b, 0)
		want(t, "a segment behind a gap", report, pollReply)
		give(t, b, 0, 0, sent[3])
		want(t, "another one", frames(t, b, 0))
		give(t, a, 0, 1, report...)
		give(t, b, 0, 0, frames(t, a, 0)...)
		b.FlushAcks()
		give(t, a, 0, 1, frames(t, b, 0)...)
		if !a.Idle() || b.inbox.Len() != 4*(round+1) {
			t.Fatalf("round %d: %d messages, idle: %v", round, b.inbox.Len(), a.Idle())
		}
	}
}

// What was sent after a poll is not taken for lost because the reply does not name it.
func TestReplyToAnOlderPoll(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	send(t, a, 1, 10)
	first := frames(t, a, 0)
	a.Up(0, 1)
	polled := frames(t, a, 0)
	send(t, a, 1, 10)
	want(t, "a second message", frames(t, a, 0), data)
	give(t, b, 0, 0, first...)
	give(t, b, 0, 0, polled...)
	give(t, a, 0, 1, frames(t, b, 0)...)
	want(t, "a reply that lacks nothing", frames(t, a, 0))
}

// A repetition that cannot be sent because the queue is full, and is not needed any more when
// the acknowledgment comes, leaves nothing to ask for.
func TestNothingIsLeftToAskFor(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	send(t, a, 1, 10)
	late := frames(t, a, 0)
	a.Up(0, 1)
	give(t, b, 0, 0, frames(t, a, 0)...)
	give(t, a, 0, 1, frames(t, b, 0)...)
	_, _, _, _ = a.Next(0)
	a.SendFailed(0, true)
	give(t, b, 0, 0, late...)
	b.FlushAcks()
	give(t, a, 0, 1, frames(t, b, 0)...)
	if err := a.check(); err != nil {
		t.Error(err)
	}
	want(t, "a timer without a message", frames(t, a, a.Deadline()))
	if a.Deadline() != protocol.Never {
		t.Errorf("until %d", a.Deadline())
	}
}

// An acknowledgment that could not be sent is sent later. A failure says nothing about a peer
// that has left meanwhile.
func TestFailures(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	b.SendFailed(0, false) // before there was a frame
	send(t, a, 1, 10)
	give(t, b, 0, 0, frames(t, a, 0)...)
	want(t, "a message", frames(t, b, 0))
	now := b.Deadline()
	if now != ackDelay {
		t.Errorf("acknowledged at %d", now)
	}
	for range 3 {
		_, _, _, ok := b.Next(now)
		b.SendFailed(now, false)
		if !ok || b.Deadline() != now+ackDelay {
			t.Fatalf("an acknowledgment that has failed at %d: sent: %v, again at %d", now, ok, b.Deadline())
		}
		now = b.Deadline()
	}
	send(t, a, 1, 10)
	_, _, _, _ = a.Next(0)
	a.Install(0, view(2, 1, 0))
	a.SendFailed(0, false)
	want(t, "a peer that has left", frames(t, a, maxRTO))
}

// A long message delays no other member's.
func TestMembersTakeTurns(t *testing.T) {
	e := newEndpoint(t, 0, 4, Config{SegmentSize: 100})
	for to := range protocol.Rank(3) {
		send(t, e, to+1, 1000)
	}
	for i, p := range frames(t, e, 0) {
		if to := protocol.Rank(1 + i%3); p.to != to {
			t.Fatalf("frame %d goes to %d, not to %d", i, p.to, to)
		}
	}
}

// Every limit holds at its bound, and one beyond it does not.
func TestLimits(t *testing.T) {
	for _, set := range []func(*Config, int){
		func(c *Config, n int) { c.SegmentSize = n },
		func(c *Config, n int) { c.WindowBytes = n },
		func(c *Config, n int) { c.QueueBytes = n },
		func(c *Config, n int) { c.MaxMessage = n },
	} {
		for n, valid := range map[int]bool{-1: false, 0: true, 1: true, longest: true, longest + 1: false} {
			var c Config
			set(&c, n)
			if (c.check() == nil) != valid {
				t.Errorf("%+v: valid: %v", c, !valid)
			}
		}
	}
	if _, err := New(Config{Rank: -1}); err == nil {
		t.Error("no rank is a rank")
	}
	e := newEndpoint(t, 0, 2, Config{MaxMessage: 100, QueueBytes: 130})
	if err := e.Send(1, make([]byte, 61), make([]byte, 40)); err == nil {
		t.Error("a message that is too long was taken")
	}
	for i, size := range []int{60, 39} { // 130 with their heads, and not one more
		if err := e.Send(1, make([]byte, 20-4*i), make([]byte, size-5*i)); err != nil {
			t.Error(err)
		}
	}
	if err := e.Send(1, []byte{0}, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a queue of 130 bytes, one too many: %v", err)
	}
	if err := newEndpoint(t, 0, 2, Config{MaxMessage: 100}).Send(1, make([]byte, 60), make([]byte, 40)); err != nil {
		t.Error(err)
	}
	for _, to := range []protocol.Rank{-1, 0, 2, 99} {
		if err := e.Send(to, nil, nil); !errors.As(err, new(*GoneError)) {
			t.Errorf("to rank %d: %v", to, err)
		}
	}
}

// A message is cut into segments that are as long as they may be. A window of them is on its
// way at a time, and a quarter of one is acknowledged at once.
func TestWindow(t *testing.T) {
	c := Config{SegmentSize: 100, WindowBytes: 800}
	a, b := newEndpoint(t, 0, 2, c), newEndpoint(t, 1, 2, c)
	if err := a.Send(1, make([]byte, 40), make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	sent := frames(t, a, 0)
	if len(sent) != 8 {
		t.Fatalf("%d segments are on their way", len(sent))
	}
	for i, p := range sent {
		if len(p.payload) != 100 {
			t.Errorf("segment %d has %d bytes", i, len(p.payload))
		}
		give(t, b, 0, 0, p)
		acked := frames(t, b, 0)
		if i%2 == 0 {
			want(t, "less than a quarter", acked)
			continue
		}
		want(t, "a quarter", acked, ack)
		give(t, a, 0, 1, acked...)
		next := frames(t, a, 0)
		if len(next) > 2 || i == 1 && len(next) != 2 {
			t.Errorf("%d segments follow two", len(next))
		}
		sent = append(sent, next...)
	}
	if len(sent) != 11 {
		t.Errorf("%d segments for 1040 bytes", len(sent))
	}
	give(t, b, 0, 0, sent[8:]...)
	if m, ok := b.Deliver(); !ok || len(m.Data) != 1040 {
		t.Errorf("%d bytes", len(m.Data))
	}
}

// Frames that no honest process sends are refused or ignored. They get no buffer, and change
// nothing: the next honest segment is taken as if they had not been.
func TestFramesThatNoHonestProcessSends(t *testing.T) {
	segment := func(change func(*frame), payload int) []byte {
		f := frame{kind: data, from: 1, to: 1, number: 1}
		change(&f)
		return append(f.appendHead(nil), make([]byte, payload)...)
	}
	edit := func(at int, value byte) []byte {
		b := segment(func(*frame) {}, 100)
		b[at] = value
		return b
	}
	honest := segment(func(*frame) {}, 100)
	for name, forged := range map[string]struct {
		from    protocol.Rank
		raw     []byte
		refused bool
	}{
		"nothing":                {0, nil, true},
		"half a head":            {0, honest[:headSize-1], true},
		"another protocol":       {0, edit(0, FrameType+1), true},
		"no kind":                {0, edit(1, 0), true},
		"an unknown kind":        {0, edit(1, byte(pollReply)+1), true},
		"an unknown flag":        {0, edit(2, flagLast<<1), true},
		"a reserved byte":        {0, edit(3, 1), true},
		"no incarnation":         {0, segment(func(f *frame) { f.from = 0 }, 100), true},
		"a poll with a payload":  {0, segment(func(f *frame) { f.kind = poll }, 100), true},
		"an ack with a flag":     {0, segment(func(f *frame) { f.kind, f.last = ack, true }, 0), true},
		"a length in the middle": {0, segment(func(f *frame) { f.length = 300 }, 100), true},
		"a second beginning":     {0, segment(func(f *frame) { f.first, f.length = true, 300 }, 100), true},
		"more than announced":    {0, segment(func(*frame) {}, 201), true},
		"an early end":           {0, segment(func(f *frame) { f.last = true }, 100), true},
		"another sender":         {0, segment(func(f *frame) { f.from = 2 }, 100), false},
		"another receiver":       {0, segment(func(f *frame) { f.to = 2 }, 100), false},
		"a segment before":       {0, segment(func(f *frame) { f.number = 0 }, 100), false},
		"a segment behind":       {0, segment(func(f *frame) { f.number = 2 }, 100), false},
		"a poll":                 {0, segment(func(f *frame) { f.kind = poll }, 0), false},
		"from itself":            {1, honest, false},
		"from no rank":           {-1, honest, false},
		"from a rank too high":   {2, honest, false},
		"from none of the view":  {99, honest, false},
		"an ack of the future":   {0, segment(func(f *frame) { f.kind, f.next = ack, 2 }, 0), false},
		"a reply of the past":    {0, segment(func(f *frame) { f.kind, f.number = pollReply, 0 }, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEndpoint(t, 1, 2, Config{})
			send(t, b, 0, 10)
			want(t, "a message", frames(t, b, 0), data)
			give(t, b, 0, 0, packet{raw: append((&frame{kind: data, first: true, length: 300, from: 1, to: 1}).appendHead(nil),
				make([]byte, 100)...)})
			for _, cut := range []int{headSize, headSize + 20} { // part of it in a buffer, as a transport would ask for one
				cut = min(cut, len(forged.raw))
				place := b.ReceiveBuffer(forged.from, forged.raw[:cut], len(forged.raw))
				if place != nil && name != "an early end" {
					t.Error("it got a buffer")
				}
			}
			err := b.Receive(0, forged.from, forged.raw, nil)
			if forged.refused != errors.Is(err, ErrFrame) || !forged.refused && err != nil {
				t.Errorf("refused: %v", err)
			}
			if name == "an early end" {
				return // it was the sender's: the channel is of no use any more
			}
			give(t, b, 0, 0, packet{raw: honest}, packet{raw: segment(func(f *frame) { f.number, f.last = 2, true }, 100)})
			if m, ok := b.Deliver(); !ok || len(m.Data) != 300 {
				t.Errorf("the message has %d bytes", len(m.Data))
			}
			if b.Idle() {
				t.Error("its own message has arrived")
			}
			if err := b.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The first segment of a message is refused if it is not first, or announces too much. A part
// in a buffer counts.
func TestBeginningOfAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		f      frame
		size   int
		placed bool
	}{
		"as long as may be":   {frame{first: true, length: 100}, 50, true},
		"all of it":           {frame{first: true, last: true, length: 100}, 100, true},
		"too long":            {frame{first: true, length: 101}, 50, false},
		"not the first":       {frame{}, 50, false},
		"more than announced": {frame{first: true, length: 50}, 51, false},
	} {
		for _, cut := range []int{0, 10} {
			b := newEndpoint(t, 1, 2, Config{MaxMessage: 100})
			f := c.f
			f.kind, f.from, f.to = data, 1, 1
			raw := append(f.appendHead(nil), make([]byte, c.size)...)
			head := raw[:headSize+cut]
			if place := b.ReceiveBuffer(0, head, len(raw)); (place != nil) != c.placed || c.placed && len(place) != c.size-cut {
				t.Errorf("%s: a buffer of %d bytes for %d", name, len(place), c.size-cut)
			}
			if err := b.Receive(0, 0, head, raw[headSize+cut:]); (err == nil) != c.placed {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A message takes memory once, and as much as it has bytes. A length that is only announced
// takes little.
func TestMemory(t *testing.T) {
	var allocated []int
	c := Config{SegmentSize: 100, Alloc: func(n int) []byte { allocated = append(allocated, n); return make([]byte, n) }}
	for _, placed := range []bool{false, true} {
		allocated = nil
		a, b := newEndpoint(t, 0, 2, c), newEndpoint(t, 1, 2, c)
		_, body := content(0, 1, 0, 1000)
		if err := a.Send(1, nil, body); err != nil {
			t.Fatal(err)
		}
		for _, p := range frames(t, a, 0) {
			head, rest := p.raw, []byte(nil)
			if placed {
				head, rest = p.raw[:headSize+7], b.ReceiveBuffer(0, p.raw[:headSize+7], len(p.raw))
				if copy(rest, p.raw[headSize+7:]) != len(p.payload)-7 {
					t.Fatalf("a buffer of %d bytes for %d", len(rest), len(p.payload)-7)
				}
			}
			if err := b.Receive(0, 0, head, rest); err != nil {
				t.Fatal(err)
			}
		}
		if m, _ := b.Deliver(); !bytes.Equal(m.Data, body) || !slices.Equal(allocated, []int{1000}) {
			t.Errorf("%d bytes, after allocations of %v", len(m.Data), allocated)
		}
	}
	allocated = nil
	b := newEndpoint(t, 1, 2, c)
	head := (&frame{kind: data, first: true, length: longest, from: 1, to: 1}).appendHead(nil)
	if place := b.ReceiveBuffer(0, head, headSize+100); len(place) != 100 || !slices.Equal(allocated, []int{firstAlloc}) {
		t.Errorf("a buffer of %d bytes, after allocations of %v", len(place), allocated)
	}
	b = newEndpoint(t, 1, 2, c)
	if place := b.ReceiveBuffer(0, head, headSize+firstAlloc+1); len(place) != firstAlloc+1 {
		t.Errorf("a buffer of %d bytes", len(place))
	}
}

// A view may have more ranks than the one before; those that are new are reached.
func TestMoreRanks(t *testing.T) {
	e := newEndpoint(t, 0, 2, Config{})
	e.Install(0, view(2, 1, 1, 1))
	send(t, e, 2, 10)
	want(t, "a new member", frames(t, e, 0), data)
	var none membership.View
	e.Install(0, &none)
	if err := e.Send(2, nil, nil); !errors.As(err, new(*GoneError)) {
		t.Errorf("%v", err)
	}
}

// A member that leaves waits for what it has sent before, and not for what it sends meanwhile.
func TestFlushIsOfEarlierMessages(t *testing.T) {
	a, b := newEndpoint(t, 0, 2, Config{}), newEndpoint(t, 1, 2, Config{})
	a.Flush()
	if !a.Flushed() {
		t.Error("nothing was sent, and it is not flushed")
	}
	send(t, a, 1, 300)
	a.Flush()
	send(t, a, 1, 300)
	before := frames(t, a, 0)
	if a.Flushed() {
		t.Error("flushed before anything has arrived")
	}
	give(t, b, 0, 0, before...)
	b.FlushAcks()
	give(t, a, 0, 1, frames(t, b, 0)...)
	send(t, a, 1, 300)
	if !a.Flushed() || a.Idle() {
		t.Errorf("flushed: %v, with a later message; idle: %v", a.Flushed(), a.Idle())
	}
	if err := a.check(); err != nil {
		t.Error(err)
	}
}
