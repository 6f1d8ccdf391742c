package p2p

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// sharedHost runs endpoints that share one processor, in virtual time: frames are received one after
// the other, and each takes cost. Its program is recursive doubling: in step s, rank r exchanges a
// message with rank r^2^s.
type sharedHost struct {
	*network
	cost protocol.Time
	step []int // by rank: of the present call
	got  []int // by rank and step: messages that have arrived of all calls
	call int
	kind map[kind]int // frames sent
}

func newSharedHost(t *testing.T, size int) *sharedHost {
	steps := bits.Len(uint(size)) - 1
	return &sharedHost{
		network: newNetwork(t, 1, size, Config{}), step: make([]int, size), got: make([]int, size*steps),
		kind: make(map[kind]int),
	}
}

func (h *sharedHost) steps() int { return len(h.got) / len(h.endpoints) }

// work lets a rank take what has arrived, make the steps that it can, and send.
func (h *sharedHost) work(r int) {
	e := h.endpoints[r]
	for {
		m, ok := e.Deliver()
		if !ok {
			break
		}
		h.got[r*h.steps()+int(m.Data[0])]++
	}
	for h.step[r] < h.steps() && h.got[r*h.steps()+h.step[r]] > h.call {
		h.step[r]++
		if h.step[r] < h.steps() {
			h.exchange(r)
		}
	}
	for {
		to, head, body, ok := e.Next(h.now)
		if !ok {
			return
		}
		h.kind[kind(head[1])]++
		h.flying = append(h.flying, flight{h.now, protocol.Rank(r), to, slices.Concat(head, body)})
	}
}

func (h *sharedHost) exchange(r int) {
	if err := h.endpoints[r].Send(protocol.Rank(r^1<<h.step[r]), nil, []byte{byte(h.step[r])}); err != nil {
		h.t.Fatal(err)
	}
}

// calls makes calls one after the other, and returns how long one takes and which frames a rank sends in it.
func (h *sharedHost) calls(n int, cost protocol.Time) (each protocol.Time, frames map[kind]float64) {
	h.cost, h.kind = cost, make(map[kind]int)
	began := h.now
	for range n {
		for r := range h.endpoints {
			h.step[r] = 0
			h.exchange(r)
			h.work(r)
		}
		for !h.done() {
			h.next()
		}
		h.call++
	}
	frames = make(map[kind]float64)
	for k, count := range h.kind {
		frames[k] = float64(count) / float64(n*len(h.endpoints))
	}
	return (h.now - began) / protocol.Time(n), frames
}

func (h *sharedHost) done() bool {
	return !slices.ContainsFunc(h.step, func(s int) bool { return s < h.steps() })
}

// next lets the first frame of the queue arrive, and the endpoints act whose timers are due by then.
func (h *sharedHost) next() {
	if len(h.flying) == 0 {
		h.t.Fatal("nothing is on its way")
	}
	f := h.flying[0]
	h.flying = h.flying[1:]
	h.now += h.cost
	if err := h.endpoints[f.to].Receive(h.now, f.from, f.bytes, nil); err != nil {
		h.t.Fatal(err)
	}
	h.work(int(f.to))
	for r, e := range h.endpoints {
		if e.Deadline() <= h.now {
			h.work(r)
		}
	}
}

// Case 89: on a host whose processors are short, acknowledgments are late, and are not asked for. The
// frames per rank and call are those of the messages and one acknowledgment for each, for any
// number of ranks; polls end when the round trips are known; and when the load ends, acknowledgments
// ride on messages again.
func TestLateAcknowledgmentsMakeNoStorm(t *testing.T) {
	for _, size := range []int{16, 64, 128, 256} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			h := newSharedHost(t, size)
			steps := float64(h.steps())
			quiet := 10 * millisecond / protocol.Time(size*h.steps())
			base, frames := h.calls(10, quiet)
			total := func() (all float64) {
				for _, n := range frames {
					all += n
				}
				return all
			}
			if total() > steps+0.5 {
				t.Errorf("quiet: %.1f frames for %v messages", total(), steps)
			}
			_, first := h.calls(10, 32*quiet) // until the round trips are known
			loaded, again := h.calls(10, 32*quiet)
			frames = again
			t.Logf("a call takes %d µs, loaded %d µs; frames %v, then %v", base/1000, loaded/1000, first, frames)
			if frames[poll] > 0.5 || total() > 2*steps+1 {
				t.Errorf("loaded: %v for %v messages", frames, steps)
			}
			h.calls(2, quiet) // what is left of the load
			after, frames := h.calls(10, quiet)
			if all := total(); all > 2*steps+1 || after > base+base/2 || frames[poll] > 0 {
				t.Errorf("after the load: %d µs a call, before it %d; %v", after, base, frames)
			}
		})
	}
}
