package node_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/driver/node"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/mem"
)

// echo is a protocol that answers every frame once, after a while, and writes
// down what it is told.
type echo struct {
	answerAfter protocol.Time
	due         protocol.Time
	answers     []protocol.Rank
	out         []string // frames to send at once, to rank 1
	failed      int

	mu  sync.Mutex
	log []string
}

func (e *echo) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, fmt.Sprintf(format, args...))
}

func (e *echo) logged() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.log)
}

func (e *echo) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	e.note("%q from %d", frame, from)
	switch string(frame) {
	case "nonsense":
		return errors.New("nonsense")
	case "ping":
		e.answers = append(e.answers, from)
		e.due = now + e.answerAfter
	}
	return nil
}

func (e *echo) Up(_ protocol.Time, peer protocol.Rank)       { e.note("up %d", peer) }
func (e *echo) Down(_ protocol.Time, peer protocol.Rank)     { e.note("down %d", peer) }
func (e *echo) Writable(_ protocol.Time, peer protocol.Rank) { e.note("writable %d", peer) }
func (e *echo) SendFailed(protocol.Time, bool)               { e.failed++ }
func (e *echo) Deadline() protocol.Time                      { return e.due }

func (e *echo) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	if len(e.out) > 0 {
		frame := e.out[0]
		e.out = e.out[1:]
		return 1, []byte(frame), nil, true
	}
	if now < e.due || len(e.answers) == 0 {
		return protocol.NoRank, nil, nil, false
	}
	to = e.answers[0]
	e.answers = e.answers[1:]
	e.due = protocol.Never
	return to, []byte("po"), []byte("ng"), true
}

// start makes two nodes over memory.
func start(t *testing.T) (protocols [2]*echo, nodes [2]*node.Node, network *mem.Network) {
	t.Helper()
	network = mem.NewNetwork(2, mem.Config{})
	for r := range nodes {
		protocols[r] = &echo{answerAfter: protocol.Time(time.Second), due: protocol.Never}
		nodes[r] = node.New(node.Config{Transport: network.Member(protocol.Rank(r)), Protocol: protocols[r]})
		if err := nodes[r].Start(); err != nil {
			t.Fatal(err)
		}
	}
	return protocols, nodes, network
}

func closeAll(t *testing.T, nodes [2]*node.Node) {
	t.Helper()
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func send(t *testing.T, n *node.Node, e *echo, frame string) {
	t.Helper()
	if err := n.Do(func(protocol.Time) { e.out = append(e.out, frame) }); err != nil {
		t.Fatal(err)
	}
}

// Frames are sent at once, and deadlines are kept.
func TestSendsAtOnceAndKeepsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		protocols, nodes, _ := start(t)
		send(t, nodes[0], protocols[0], "ping")
		synctest.Wait()
		if got, want := protocols[1].logged(), []string{"up 0", `"ping" from 0`}; !slices.Equal(got, want) {
			t.Errorf("at once: %q", got)
		}
		testutil.Advance(999 * time.Millisecond)
		if got := protocols[0].logged(); slices.Contains(got, `"pong" from 1`) {
			t.Errorf("too early: %q", got)
		}
		testutil.Advance(2 * time.Millisecond)
		if got := protocols[0].logged(); !slices.Contains(got, `"pong" from 1`) {
			t.Errorf("in time: %q", got)
		}
		closeAll(t, nodes)
	})
}

// Frames and their bytes are counted, with the time of the last one.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		protocols, nodes, network := start(t)
		testutil.Advance(time.Second)
		send(t, nodes[0], protocols[0], "ping")
		synctest.Wait()
		look := func(of int) (p node.Peer, total node.Traffic) {
			if err := nodes[of].Do(func(protocol.Time) {
				p, total = nodes[of].Peer(protocol.Rank(1-of)),
					nodes[of].Traffic()
			}); err != nil {
				t.Fatal(err)
			}
			return p, total
		}
		ping := node.Traffic{FramesReceived: 1, BytesReceived: 4}
		if p, total := look(1); p.Traffic != ping || total != ping || !p.Connected ||
			p.Heard != protocol.Time(time.Second)+1 {
			t.Errorf("%+v, %+v", p, total)
		}
		testutil.Advance(2 * time.Second)
		both := node.Traffic{FramesSent: 1, BytesSent: 4, FramesReceived: 1, BytesReceived: 4} // "pong"
		if p, total := look(0); p.Traffic != both || total != both || p.Heard != protocol.Time(2*time.Second)+1 {
			t.Errorf("%+v, %+v", p, total)
		}
		network.Kill(1)
		synctest.Wait()
		if p, _ := look(0); p.Connected {
			t.Errorf("%+v", p)
		}
		_ = nodes[0].Do(func(protocol.Time) { nodes[0].Forget(1) })
		if p, total := look(0); p != (node.Peer{}) || total != both {
			t.Errorf("%+v, %+v", p, total)
		}
		closeAll(t, nodes)
	})
}

// A frame that makes no sense is passed over; a peer that is down is told of.
func TestNonsenseAndTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		protocols, nodes, network := start(t)
		send(t, nodes[0], protocols[0], "nonsense")
		send(t, nodes[0], protocols[0], "sense")
		synctest.Wait()
		if got := protocols[1].logged(); !slices.Contains(got, `"sense" from 0`) {
			t.Errorf("after nonsense: %q", got)
		}
		network.Kill(1)
		synctest.Wait()
		send(t, nodes[0], protocols[0], "anybody?")
		if protocols[0].failed != 1 {
			t.Errorf("%d frames unsent", protocols[0].failed)
		}
		closeAll(t, nodes)
	})
}

// A closed node calls nobody any more.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		protocols, nodes, _ := start(t)
		send(t, nodes[0], protocols[0], "ping")
		synctest.Wait()
		closeAll(t, nodes)
		if err := nodes[0].Do(func(protocol.Time) {}); !errors.Is(err, node.ErrClosed) {
			t.Errorf("error %v", err)
		}
		testutil.Advance(2 * time.Second) // beyond the deadline of the answer
		if got := protocols[0].logged(); slices.Contains(got, `"pong" from 1`) {
			t.Errorf("after Close: %q", got)
		}
		closeAll(t, nodes)
	})
}
