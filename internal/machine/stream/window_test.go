package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// fed returns a member of four in the tree of root 0, and the frames that its parent
// sends it, one per message. A size above InlineSize keeps the messages out of offers.
func fed(t *testing.T, rank protocol.Rank, messages, size int,
	configure func(*stream.Config),
) (*stream.Member, [][]byte) {
	t.Helper()
	at := func(rank protocol.Rank) *stream.Member {
		c := stream.Config{Rank: rank, Size: 4, Incarnation: 1}
		if configure != nil {
			configure(&c)
		}
		m, err := stream.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	root := at(0)
	var data [][]byte
	for i := range messages {
		if err := root.Write(message(0, i, size), 0); err != nil {
			t.Fatal(err)
		}
		data = append(data, frames(root, 1)[1]...)
	}
	return at(rank), data
}

// smallWindows makes flow control bind after a few segments.
func smallWindows(c *stream.Config) {
	c.SegmentSize, c.InlineSize, c.KeepBytes, c.InboxBytes, c.OutboxBytes = 1024, 64, 64<<10, 32<<10, 8<<10
}

// "A member of a view has everything that was sent in it": all members broadcast as
// fast as they may, over a network that loses frames, and programs stop to receive now
// and then. Nothing is lost, and the group does not stand still.
func TestNothingIsLostWhenAllBroadcast(t *testing.T) {
	seeds := 60
	if testing.Short() || testutil.RaceEnabled {
		seeds = 10
	}
	for seed := range uint64(testutil.Seeds.Or(seeds)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { allBroadcast(t, seed) })
	}
}

func allBroadcast(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	size := 3 + rng.IntN(6)
	f := []faults{{}, {drop: 0.02}, {drop: 0.05, duplicate: 0.05, reorder: 0.1}}[rng.IntN(3)]
	n := newNetwork(t, size, seed, f, smallWindows)
	dead := protocol.Rank(-1)
	if seed%3 == 1 { // no member is told, and there is no view
		dead = protocol.Rank(1 + rng.IntN(size-1))
		n.members[dead].dead = true
	}
	sent := map[protocol.Rank][][]byte{}
	for i := range 120 {
		for r := range protocol.Rank(size) {
			if r == dead {
				continue
			}
			m := message(r, i, rng.IntN(4000))
			sent[r] = append(sent[r], m)
			n.broadcast(r, m)
			if rng.IntN(40) == 0 {
				n.members[rng.IntN(size)].deaf = n.now + protocol.Time(rng.Int64N(int64(2*time.Second)))
			}
		}
	}
	n.run(n.now + 10*minute)
	n.check(sent)
	for _, h := range n.members {
		if h.lost > 0 {
			t.Errorf("rank %d has lost %d segments: %+v", h.rank, h.lost, h.Stats())
		}
	}
}

// A program that does not receive blocks the root after InboxBytes and a window, and
// the root goes on when it does.
func TestProgramThatDoesNotReceiveBlocksTheRoot(t *testing.T) {
	n := newNetwork(t, 4, 1, faults{}, smallWindows)
	n.members[3].deaf = protocol.Time(time.Hour)
	root := n.members[0]
	var sent [][]byte
	written := 0
	for i := range 400 {
		m := message(0, i, 1000)
		for range 2000 {
			if root.Write(m, 0) == nil {
				sent, written = append(sent, m), written+len(m)
				break
			}
			n.pump(root)
			if !n.step() || n.now > 20*minute {
				break
			}
		}
		if len(sent) <= i {
			break
		}
		n.pump(root)
	}
	if limit := 32<<10 + 64<<10 + 8<<10; written > 2*limit {
		t.Fatalf("the root has sent %d bytes to a program that receives nothing", written)
	}
	if len(sent) == 400 {
		t.Fatal("the root was never blocked")
	}
	n.members[3].deaf = 0
	n.pump(n.members[3])
	for i := len(sent); i < 400; i++ {
		sent = append(sent, message(0, i, 1000))
		n.broadcast(0, sent[i])
	}
	n.run(n.now + 10*minute)
	n.check(map[protocol.Rank][][]byte{0: sent})
}

// Flow control costs a few credits per window, and nothing while little is
// sent.
func TestCreditsAreFew(t *testing.T) {
	n := newNetwork(t, 8, 1, faults{}, nil)
	for i := range 100 {
		n.broadcast(0, message(0, i, 64))
	}
	n.run(minute)
	if credits := n.kinds[kindCredit]; credits > 0 {
		t.Errorf("%d credits of 6 KiB", credits)
	}
	if testutil.RaceEnabled {
		return // 64 MiB in one goroutine
	}
	for i := range 64 {
		n.broadcast(0, message(0, 100+i, 1<<20))
	}
	n.run(n.now + 10*minute)
	if credits, most := n.kinds[kindCredit], 64/12*8*7*3; credits == 0 || credits > most {
		t.Errorf("%d credits of 64 MiB, want 1 to %d", credits, most)
	}
}

// kindCredit is the first byte of a credit.
const kindCredit = 9

// Between hosts that are far apart, a credit takes long although nothing waits in queues.
// The window opens all the same: a root that always has something to send has most of its
// share in flight.
func TestLongPathsDoNotCloseTheWindow(t *testing.T) {
	const (
		oneWay = 200 * time.Millisecond
		trip   = 2 * 2 * oneWay // the tree of four members has two levels
		keep   = 4 << 20
		share  = keep / 4 * 3
	)
	n := newNetwork(t, 4, 1, faults{latency: oneWay, jitter: 5 * time.Millisecond},
		func(c *stream.Config) { c.KeepBytes = keep })
	sendFor := func(d time.Duration) (bytes int) {
		for end := n.now + protocol.Time(d); n.now < end; bytes += 32 << 10 {
			n.broadcast(0, message(0, 0, 32<<10))
		}
		return bytes
	}
	sendFor(10 * trip) // slow start
	if sent, most := sendFor(10*trip), 10*share; sent < most/2 {
		t.Errorf("%d kB in ten round trips, want half of %d at least", sent>>10, most>>10)
	}
}
