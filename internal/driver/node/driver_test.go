package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/driver/node"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// tape is a transport and a protocol that write down what they are asked for.
type tape struct {
	transport.Handler
	log    []string
	out    [][2]string // frames to send, head and body, all to one rank
	to     protocol.Rank
	errs   []error // of sends to come
	due    protocol.Time
	closes int
	calls  bool // there is a program, which is called on other goroutines
}

func (p *tape) note(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }

// take returns what was written since it was called last.
func (p *tape) take() []string {
	log := p.log
	p.log = nil
	return log
}

func (p *tape) Start(h transport.Handler) error { p.Handler = h; return nil }
func (p *tape) Close() error                    { p.closes++; return nil }

func (p *tape) Send(to protocol.Rank, frame []byte) error { return p.sent("%s to %d", frame, to) }

func (p *tape) sent(format string, args ...any) error {
	p.note(format, args...)
	if len(p.errs) == 0 {
		return nil
	}
	err := p.errs[0]
	p.errs = p.errs[1:]
	return err
}

// taped is the protocol. Its methods have the names of the transport's handler.
type taped struct{ *tape }

func (p taped) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	p.note("%s from %d at %d", frame, from, now)
	return nil
}
func (p taped) Up(_ protocol.Time, peer protocol.Rank)       { p.note("up %d", peer) }
func (p taped) Down(_ protocol.Time, peer protocol.Rank)     { p.note("down %d", peer) }
func (p taped) Writable(_ protocol.Time, peer protocol.Rank) { p.note("writable %d", peer) }
func (p taped) SendFailed(_ protocol.Time, full bool)        { p.note("failed, full: %v", full) }
func (p taped) Deadline() protocol.Time                      { return p.due }

func (p taped) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	if now >= p.due {
		p.note("due at %d", now)
		p.due = protocol.Never
	}
	if len(p.out) == 0 {
		return 0, nil, nil, false
	}
	f := p.out[0]
	p.out = p.out[1:]
	return p.to, []byte(f[0]), []byte(f[1]), true
}

// able is a transport that can do all that transports may.
type able struct{ *tape }

func (p able) SendVector(to protocol.Rank, head, body []byte) error {
	return p.sent("%s+%s to %d", head, body, to)
}
func (p able) Cork()                           { p.note("cork") }
func (p able) Uncork()                         { p.note("uncork") }
func (p able) Poll(protocol.Rank) (bool, bool) { p.note("poll"); return true, true }
func (p able) Rest()                           { p.note("rest") }

// buffering is a protocol with buffers.
type buffering struct{ taped }

func (p buffering) ReceiveBuffer(_ protocol.Rank, _ []byte, size int) []byte {
	return make([]byte, size)
}

func (p buffering) BufferFilled(_ protocol.Time, from protocol.Rank, head, body []byte) error {
	p.note("%s and %d bytes from %d", head, len(body), from)
	return errors.New("logged, and no more")
}

func started(t *testing.T, c node.Config) *node.Node {
	t.Helper()
	n := node.New(c)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func expect(t *testing.T, p *tape, want ...string) {
	t.Helper()
	if p.calls {
		synctest.Wait() // for calls of the program
	}
	if got := p.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Frames go out corked and in parts if the transport can do that, and joined otherwise. The
// protocol learns of those that do not, and whether the queue was full.
func TestFramesAreSentAsTheTransportCan(t *testing.T) {
	p := &tape{due: protocol.Never, to: 1}
	n := started(t, node.Config{Transport: able{p}, Protocol: taped{p}})
	send := func() {
		_ = n.Do(func(protocol.Time) { p.out = [][2]string{{"one", ""}, {"he", "ad"}, {"th", "ree"}} })
	}
	p.errs = []error{nil, fmt.Errorf("%w", transport.ErrFull), transport.ErrDown}
	send()
	expect(t, p, "cork", "one to 1", "he+ad to 1", "failed, full: true", "th+ree to 1", "failed, full: false", "uncork")
	if total := n.Traffic(); total.FramesSent != 1 || total.BytesSent != 3 {
		t.Errorf("%+v", total)
	}
	send()
	p.take()
	if total := n.Traffic(); total.FramesSent != 4 || total.BytesSent != 3+3+4+5 {
		t.Errorf("%+v", total)
	}
	_ = n.Do(func(protocol.Time) {})
	expect(t, p) // nothing to cork
	p.to = 2
	send()
	p.take()
	p.to = 1
	if one, two := n.Peer(1), n.Peer(2); one.FramesSent != 4 || two.FramesSent != 3 || two.BytesSent != 3+4+5 {
		t.Errorf("%+v, %+v", one, two)
	}
	n = started(t, node.Config{Transport: p, Protocol: taped{p}})
	send()
	expect(t, p, "one to 1", "head to 1", "three to 1")
	n.Rest()
	if received, ok := n.Poll(1); received || ok {
		t.Error("it polls what cannot be polled")
	}
	expect(t, p)
}

// program is one that always has something to do.
type program func()

func (program) Pending() bool { return true }

func (f program) Dispatch() { f() }

// Frames of a batch arrive at one time and are answered together; what follows a step is called
// once, the last of it without the lock.
func TestBatchesAreOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &tape{due: protocol.Never, calls: true}
		var n *node.Node
		n = started(t, node.Config{
			Transport: p, Protocol: taped{p},
			AfterStep: func(protocol.Time) { p.note("step") },
			Program:   program(func() { n.Look(func() { p.note("unlocked") }) }),
		})
		batches := p.Handler.(transport.BatchHandler)
		batches.ReceiveMore(1, []byte("a"))
		testutil.Advance(5 * time.Nanosecond)
		batches.ReceiveMore(2, []byte("b"))
		testutil.Advance(5 * time.Nanosecond)
		p.Handler.Receive(1, []byte("c"))
		expect(t, p, "a from 1 at 1", "b from 2 at 1", "c from 1 at 1", "step", "unlocked")
		testutil.Advance(5 * time.Nanosecond)
		p.Handler.Receive(2, []byte("d"))
		expect(t, p, "d from 2 at 16", "step", "unlocked")
		for peer, frames := range map[protocol.Rank]uint64{1: 2, 2: 2, 3: 0} {
			if got := n.Peer(peer); got.FramesReceived != frames {
				t.Errorf("rank %d: %+v", peer, got)
			}
		}
		_ = n.Do(func(protocol.Time) { n.Forget(2) })
		p.take()
		p.Handler.Receive(2, []byte("e"))
		expect(t, p, "e from 2 at 16", "step", "unlocked")
		if got := n.Peer(2); got.FramesReceived != 1 {
			t.Errorf("rank 2 is not forgotten: %+v", got)
		}
		p.Handler.Writable(2)
		expect(t, p, "writable 2", "step", "unlocked")
		if received, ok := n.Poll(1); received || ok {
			t.Error("a poll may call the program")
		}
	})
}

// The timer follows the deadlines: a later one, an earlier one, and one after the other.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &tape{due: protocol.Never}
		n := started(t, node.Config{Transport: p, Protocol: taped{p}, Program: program(func() {})})
		began := time.Now()
		for _, set := range [][]time.Duration{
			{time.Second},
			{3 * time.Second},
			{3 * time.Second, time.Second},
			{time.Second, 3 * time.Second},
		} {
			var due protocol.Time
			for _, d := range set {
				_ = n.Do(func(now protocol.Time) {
					due = now + protocol.Time(d)
					p.due = due
				})
			}
			testutil.Advance(4 * time.Second)
			expect(t, p, fmt.Sprint("due at ", due))
			if at := n.Wall(due); at.Sub(began) != time.Duration(due-1) {
				t.Errorf("%d is %v", due, at.Sub(began))
			}
		}
	})
}

// A poll and a rest go to a transport that has them.
func TestPolls(t *testing.T) {
	p := &tape{due: protocol.Never}
	n := started(t, node.Config{Transport: able{p}, Protocol: taped{p}})
	if received, ok := n.Poll(1); !received || !ok {
		t.Error("no poll")
	}
	n.Rest()
	expect(t, p, "poll", "rest")
}

// Long frames go to the buffers of a protocol that has some, until the node is closed. A closed
// node passes nothing on, and closes its transport once.
func TestBuffersAndClose(t *testing.T) {
	p := &tape{due: protocol.Never}
	var log bytes.Buffer
	n := started(t, node.Config{
		Transport: p, Protocol: buffering{taped{p}},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if _, answers := p.Handler.(transport.RequestHandler); answers {
		t.Error("it answers requests without a handler")
	}
	buffers := p.Handler.(transport.BufferProvider)
	if b := buffers.ReceiveBuffer(1, []byte("head"), 10); len(b) != 10 {
		t.Errorf("a buffer of %d bytes", len(b))
	}
	buffers.BufferFilled(1, []byte("head"), make([]byte, 6))
	expect(t, p, "head and 6 bytes from 1")
	p.Handler.Receive(1, []byte("good"))
	p.Handler.Receive(1, []byte("too!"))
	p.take()
	if n := strings.Count(log.String(), "frame refused"); n != 1 {
		t.Errorf("%d frames are said to be refused", n)
	}
	if got := n.Peer(1); got.BytesReceived != 18 {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if err := n.Close(); err != nil || p.closes != 1 {
			t.Errorf("closed %d times, %v", p.closes, err)
		}
	}
	if buffers.ReceiveBuffer(1, nil, 10) != nil {
		t.Error("a buffer after Close")
	}
	buffers.BufferFilled(1, nil, []byte{1})
	p.Handler.Receive(1, nil)
	p.Handler.Up(1, 1)
	p.Handler.Down(1, transport.ErrDown)
	p.Handler.Down(1, transport.ErrIdle)
	p.Handler.Writable(1)
	expect(t, p)

	asked := 0
	plain := &tape{due: protocol.Never}
	started(t, node.Config{
		Transport: plain, Protocol: taped{plain},
		HandleRequest: func(context.Context, transport.Client, []byte, func([]byte)) { asked++ },
	})
	plain.Handler.(transport.RequestHandler).HandleRequest(t.Context(), transport.Client{}, nil, nil)
	if plain.Handler.(transport.BufferProvider).ReceiveBuffer(1, nil, 10) != nil || asked != 1 {
		t.Errorf("a buffer without a provider, or %d requests", asked)
	}
}

// refusing is a transport that does not start.
type refusing struct{ *tape }

var errStart = errors.New("no port")

func (refusing) Start(transport.Handler) error { return errStart }

func TestStartFails(t *testing.T) {
	p := &tape{due: protocol.Never}
	if err := node.New(node.Config{Transport: refusing{p}, Protocol: taped{p}}).Start(); !errors.Is(err, errStart) {
		t.Errorf("%v", err)
	}
}
