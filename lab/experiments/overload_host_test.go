package experiments

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Overload is broadcasts in a group of [stream.Member]s, the very machines that
// processes run, on hosts that are too slow for them: all members share a few
// processors. Every send and every receive occupies one of them for a random time.
// Whatever a member sends therefore slows all others down, which LogP with a processor
// for each process does not show.
type Overload struct {
	// Size is how many members there are, and Processors how many they share.
	Size, Processors int
	// Overhead is the mean time of a send or a receive, and Latency that of a frame in
	// the network, in nanoseconds. Times are distributed exponentially.
	Overhead, Latency protocol.Time
	// Broadcasts is how many there are, one after the other, and Pause is from the end
	// of one to the beginning of the next. Warmup come first and do not count.
	Broadcasts, Warmup int
	Pause              protocol.Time
	// Dead are ranks that refuse connections, and Silent ranks that stop after the warm-up
	// without a sign.
	Dead, Silent []protocol.Rank
	// Timers is how late timers fire. If nil, they are on time.
	Timers Lateness
	// Lead is how long after a message its correction starts. If zero, members measure it.
	Lead protocol.Time
	// Seed decides every random choice.
	Seed uint64
}

// OverloadResult is what the broadcasts took.
type OverloadResult struct {
	// Messages is the number of frames sent per member and broadcast.
	Messages float64
	// First is until the last live member has the first message after the warm-up, in
	// nanoseconds. Times are those of all messages, in ascending order.
	First protocol.Time
	Times []protocol.Time
	// Stats are sums over all members.
	Stats stream.Stats
}

// Lateness is how late timers fire on a host, in nanoseconds: the 0th, 10th, 50th, 90th,
// 99th and 100th percentile.
type Lateness []protocol.Time

// Timers as they are on a virtual machine with two processors, measured by
// go test -bench Lateness ./internal/driver/timers: if nothing else runs, beside one busy loop for
// each processor, and beside eight.
var (
	QuietTimers      = Lateness{10_000, 15_000, 27_000, 56_000, 104_000, 300_000}
	SharedTimers     = Lateness{15_000, 24_000, 35_000, 45_000, 908_000, 3_000_000}
	OverloadedTimers = Lateness{20_000, 35_000, 3_486_000, 11_682_000, 19_575_000, 30_000_000}
)

// draw returns a random lateness.
func (l Lateness) draw(rng *rand.Rand) protocol.Time {
	if l == nil {
		return 0
	}
	at := []float64{0, 0.1, 0.5, 0.9, 0.99, 1}
	u := rng.Float64()
	i := 1
	for u > at[i] {
		i++
	}
	part := (u - at[i-1]) / (at[i] - at[i-1])
	return l[i-1] + protocol.Time(part*float64(l[i]-l[i-1]))
}

// overloadLimit is how long a broadcast may take.
const overloadLimit = 60_000_000_000

// Run runs the broadcasts.
func (o *Overload) Run() (OverloadResult, error) {
	h := &overloadedHost{
		Overload: o, now: 1, rng: rand.New(rand.NewPCG(o.Seed, 0x10ad)),
		free: make([]protocol.Time, o.Processors), members: make([]overloadedMember, o.Size),
	}
	for r := range h.members {
		m, err := stream.New(stream.Config{Rank: protocol.Rank(r), Size: protocol.Rank(o.Size), Incarnation: 1, Lead: o.Lead})
		if err != nil {
			return OverloadResult{}, err
		}
		h.members[r] = overloadedMember{Member: m, dead: slices.Contains(o.Dead, protocol.Rank(r))}
	}
	for i := range o.Warmup + o.Broadcasts {
		if i == o.Warmup {
			h.result, h.frames = OverloadResult{}, 0
			for _, r := range o.Silent {
				h.members[r].silent = true
			}
		}
		if err := h.broadcast(); err != nil {
			return OverloadResult{}, err
		}
	}
	for r := range h.members {
		h.result.Stats = sumStats(h.result.Stats, h.members[r].Stats())
	}
	h.result.First = h.result.Times[0]
	slices.Sort(h.result.Times)
	h.result.Messages = float64(h.frames) / float64(o.Broadcasts) / float64(o.Size-len(o.Dead)-len(o.Silent))
	return h.result, nil
}

// sumStats adds what shows why messages are sent.
func sumStats(a, b stream.Stats) stream.Stats {
	a.Relayed += b.Relayed
	a.Grafted += b.Grafted
	a.Offers += b.Offers
	a.Early += b.Early
	a.Delay = max(a.Delay, b.Delay)
	return a
}

// overloadedHost is the group, its network and its processors.
type overloadedHost struct {
	*Overload
	rng     *rand.Rand
	now     protocol.Time
	order   int
	free    []protocol.Time // when each processor is free
	members []overloadedMember
	events  offersEvents
	got     int // members that have got the message
	frames  int
	result  OverloadResult
}

type overloadedMember struct {
	*stream.Member
	dead   bool // it refuses connections
	silent bool // frames to it vanish
	woken  protocol.Time
}

// broadcast sends a message from rank 0, waits until all live members have it, and
// pauses.
func (h *overloadedHost) broadcast() error {
	began, others := h.now, 0
	for r := range h.members[1:] {
		if !h.members[1+r].dead && !h.members[1+r].silent {
			others++
		}
	}
	h.got = 0
	if err := h.members[0].Write(make([]byte, 64), 0); err != nil {
		return err
	}
	h.add(offersEvent{at: h.now})
	for h.got < others {
		if len(h.events) == 0 || h.now > began+overloadLimit {
			return fmt.Errorf("experiments: %d of %d live members have got the message", h.got, others)
		}
		h.step()
	}
	h.result.Times = append(h.result.Times, h.now-began)
	until := h.now + h.Pause
	for len(h.events) > 0 && h.events[0].at < until {
		h.step()
	}
	h.now = max(h.now, until)
	return nil
}

// step lets a processor do the next event: a frame that has arrived, or a deadline.
func (h *overloadedHost) step() {
	e := heap.Pop(&h.events).(offersEvent)
	if h.members[e.to].dead || h.members[e.to].silent {
		return
	}
	processor := &h.free[0]
	for i := range h.free {
		if h.free[i] < *processor {
			processor = &h.free[i]
		}
	}
	h.now = max(h.now, e.at, *processor)
	*processor = h.now
	m := &h.members[e.to]
	if e.frame != nil {
		*processor += h.draw(h.Overhead)
		_ = m.Receive(h.now, e.from, e.frame) // nothing malformed is sent
	}
	h.pump(e.to, m, processor)
}

// pump carries out what a member wants to do now, on a processor.
func (h *overloadedHost) pump(r protocol.Rank, m *overloadedMember, processor *protocol.Time) {
	for {
		to, head, body, ok := m.Next(h.now)
		if !ok {
			break
		}
		h.frames++
		if h.members[to].dead {
			m.SendFailed(h.now, false)
			continue
		}
		*processor += h.draw(h.Overhead)
		h.add(offersEvent{at: *processor + h.draw(h.Latency), to: to, from: r, frame: slices.Concat(head, body)})
	}
	for {
		if _, ok := m.Deliver(h.now); !ok {
			break
		}
		h.got++
	}
	if due := m.Deadline(); due != protocol.Never && (m.woken <= h.now || due < m.woken) {
		m.woken = due
		h.add(offersEvent{at: max(due, h.now+1) + h.Timers.draw(h.rng), to: r})
	}
}

// draw returns a random time.
func (h *overloadedHost) draw(mean protocol.Time) protocol.Time {
	return protocol.Time(h.rng.ExpFloat64() * float64(mean))
}

func (h *overloadedHost) add(e offersEvent) {
	h.order++
	e.order = h.order
	heap.Push(&h.events, e)
}
