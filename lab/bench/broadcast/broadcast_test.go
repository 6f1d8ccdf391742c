package broadcast

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"

	"github.com/pleach-go/pleach/lab/bench"
)

func TestSummary(t *testing.T) {
	var s summary
	s.add(10, outcome{complete: 10, took: 50 * time.Microsecond, cpu: 30 * time.Microsecond})
	s.add(10, outcome{complete: 3, cpu: 30 * time.Microsecond}) // its time does not count
	s.counts = s.counts.plus(counts{frames: 60, bytes: 6000})
	want := Result{
		Members: 4, Dead: 1, Rounds: 20, Complete: 13, P10: 5, P50: 5, P99: 5, Max: 5,
		PerSecond: 200000, Bytes: 100, Messages: 1, CPU: 3,
	}
	if got := s.result(Result{Members: 4, Dead: 1}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var none summary
	if got := none.result(Result{Members: 4}); got != (Result{Members: 4}) {
		t.Errorf("nothing measured, got %+v", got)
	}
}

func TestChooseDead(t *testing.T) {
	for _, members := range []int{3, 8, 33, 64} {
		tree, err := binomial(members)
		if err != nil {
			t.Fatal(err)
		}
		for dead := range members - 1 {
			chosen := chooseDead(tree, dead, 7)
			if len(chosen) != dead || chosen[0] {
				t.Errorf("%d of %d dead: %v", dead, members, chosen)
			}
			inner := 0
			for r := range chosen {
				if _, ok := tree.Child(protocol.Rank(r), 0); ok {
					inner++
				}
				if again := chooseDead(tree, dead, 7); !again[r] {
					t.Errorf("%d of %d dead: %v, then %v", dead, members, chosen, again)
				}
			}
			if dead > 0 && members > 3 && inner == 0 {
				t.Errorf("%d of %d dead: %v, none of them an inner node", dead, members, chosen)
			}
			got := reachable(tree, chosen)
			if live := members - dead - 1; got > live || dead == 0 && got != live || inner > 0 && dead < 3 && got == live {
				t.Errorf("%d of %d dead: %v, %d of %d reachable", dead, members, chosen, got, live)
			}
		}
		flat, err := star(members)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(flat, map[int]bool{1: true}); got != members-2 {
			t.Errorf("flat: %d of %d reachable", got, members-2)
		}
	}
}

func TestBursts(t *testing.T) {
	for _, c := range []struct {
		rate                  bool
		rounds, burst, bursts int
	}{{false, 7, 1, 7}, {true, 1, 1, 1}, {true, 7, 7, 1}, {true, 8, 2, 4}, {true, 1000, 200, 5}} {
		config := Config{Rate: c.rate, Rounds: c.rounds}
		if burst, bursts := config.rounds(); burst != c.burst || bursts != c.bursts {
			t.Errorf("%+v: %d times %d", c, bursts, burst)
		}
	}
}

func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, segmentSize - 1, segmentSize, segmentSize + 1, 3*segmentSize + 5} {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(i * 7)
		}
		stamp(payload, 0)
		b := appendMessage(nil, payload)
		segments := max((size+segmentSize-1)/segmentSize, 1)
		if want := size + segments*(lengthSize+headSize+leftSize) - leftSize; len(b) != want || wholeFrames(b) != want ||
			wholeFrames(b[:want-1]) >= want {
			t.Errorf("%d bytes: %d framed, want %d, %d of them whole", size, len(b), want, wholeFrames(b))
		}
		got := 0
		r := &receiver{size: size, burst: 1, arrived: func(uint64) { got++ }}
		p := &bareMember{deliver: r.take}
		p.take(b)
		if err := r.err(); err != nil || got != 1 {
			t.Errorf("%d bytes: %d messages, %v", size, got, err)
		}
	}
}

// firstFrame notes the size of the first frame that is sent.
type firstFrame struct {
	once sync.Once
	size int
}

func (f *firstFrame) Start(transport.Handler) error { return nil }
func (f *firstFrame) Close() error                  { return nil }
func (f *firstFrame) Send(_ protocol.Rank, frame []byte) error {
	f.once.Do(func() { f.size = len(frame) })
	return nil
}

// "with the same frame size": what others send is as long as what Pleach sends.
func TestFramesAreAsLongAsPleachs(t *testing.T) {
	for _, size := range []int{1, 64, segmentSize, segmentSize + 1} {
		f := new(firstFrame)
		g, err := pleach.Start(t.Context(), pleach.Config{Network: pleach.Network{Transport: f, Size: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Broadcast(t.Context(), make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		first := binary.BigEndian.Uint32(appendMessage(nil, make([]byte, size)))
		if err := g.Close(); err != nil || f.size != int(first) {
			t.Errorf("%d bytes: a frame of Pleach's is %d bytes long, ours %d (%v)", size, f.size, first, err)
		}
	}
}

func TestReceiverSeesWrongMessages(t *testing.T) {
	message := make([]byte, 16)
	r := &receiver{size: 16, burst: 1, arrived: func(uint64) {}}
	r.take(message)
	stamp(message, 2)
	r.take(message)
	if r.count.Load() != 1 || r.err() == nil {
		t.Errorf("message 2 was taken for message 1: %d taken, %v", r.count.Load(), r.err())
	}
	short := &receiver{size: 16, burst: 1, arrived: func(uint64) {}}
	short.take(message[:15])
	if short.err() == nil {
		t.Error("15 bytes were taken for 16")
	}
}

// A member that is late with a burst must not be counted for the next one.
func TestLateMembersDoNotCount(t *testing.T) {
	g := &latch{done: make(chan arrival, 1)}
	g.expect(2, 1)
	g.arrive(1)
	if len(g.done) > 0 {
		t.Error("burst 1 was taken for burst 2")
	}
	g.arrive(2)
	if last := <-g.done; last.burst != 2 {
		t.Errorf("got burst %d", last.burst)
	}
	g.arrive(2)
	if len(g.done) > 0 {
		t.Error("one too many was counted")
	}
}

func TestRun(t *testing.T) {
	for _, c := range []Config{
		{Members: 6, Dead: []int{0, 2}, Size: 64, Rounds: 20},
		{Members: 5, Dead: []int{0}, Size: 3, Rounds: 20},
		{Members: 5, Dead: []int{0}, Size: segmentSize + 100, Rounds: 10},
		{Members: 6, Dead: []int{0, 1}, Size: 200, Rounds: 500, Rate: true},
	} {
		c.Systems = Systems()
		last := 0
		c.Progress = func(done int) { last = done }
		results, err := Run(t.Context(), c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if len(results) != len(c.Dead)*len(c.Systems) || last != c.Rounds {
			t.Errorf("%d results, %d rounds done: %+v", len(results), last, results)
		}
		for _, r := range results {
			checkResult(t, c, r)
		}
	}
}

func checkResult(t *testing.T, c Config, r Result) {
	t.Helper()
	want := c.Rounds
	if r.System == "bare" && r.Dead > 0 {
		want = 0 // an inner node is among the dead
	}
	if r.Complete != want || r.Rounds != c.Rounds || r.Members != c.Members || r.Size != c.Size {
		t.Errorf("want %d complete: %+v", want, r)
	}
	times := []float64{r.P10, r.P50, r.P99, r.Max}
	if !slices.IsSorted(times) || (r.P10 > 0) != (want > 0) || (r.PerSecond > 0) != (want > 0) {
		t.Errorf("times %v: %+v", times, r)
	}
	// Each member but the root gets each message, and once; Pleach corrects too, and
	// joins messages that come in a burst.
	live := float64(c.Members - r.Dead)
	segments := float64(max((c.Size+segmentSize-1)/segmentSize, 1))
	least := (live - 1) / live * segments
	if r.System == "pleach" && c.Rate {
		least = 0
	}
	if want > 0 && (r.Messages < least-0.01 || r.System != "pleach" && r.Messages > least+0.01) {
		t.Errorf("%.3f messages, want %.3f: %+v", r.Messages, least, r)
	}
	if want > 0 && r.Bytes < (live-1)/live*float64(c.Size) {
		t.Errorf("bytes: %+v", r)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := Config{Systems: Systems(), Members: 4, Dead: []int{0}, Size: 64, Rounds: bench.MaxRounds}
	c.Progress = func(done int) {
		if done == 10 {
			cancel()
		}
	}
	results, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || len(results) != 3 || results[0].Rounds < 10 {
		t.Errorf("%+v, %v", results, err)
	}
	results, err = Run(ctx, c)
	if !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("before the first round: %+v, %v", results, err)
	}
}

func TestCheck(t *testing.T) {
	good := Config{Systems: []string{"pleach"}, Members: 4, Dead: []int{0}, Rounds: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for about, change := range map[string]func(*Config){
		"--members 1:":         func(c *Config) { c.Members = 1 },
		"--size -1:":           func(c *Config) { c.Size = -1 },
		"--rounds 0:":          func(c *Config) { c.Rounds = 0 },
		"--dead:":              func(c *Config) { c.Dead = nil },
		"--dead 3:":            func(c *Config) { c.Dead = []int{3} },
		"--dead: 1 is there":   func(c *Config) { c.Dead = []int{1, 1} },
		"--compare gossip:":    func(c *Config) { c.Systems = []string{"pleach", "gossip"} },
		"--compare pleach:":    func(c *Config) { c.Systems = []string{"pleach", "pleach"} },
		"--processes: 1 group": func(c *Config) { c.Processes, c.Members = true, 1000 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), about) {
			t.Errorf("%s %v", about, err)
		}
	}
}

// What a profile of one system alone shows:
//
//	go test -run '^$' -bench Broadcast/pleach -cpuprofile cpu.out ./lab/bench
func BenchmarkBroadcast(b *testing.B) {
	for _, name := range Systems() {
		b.Run(name, func(b *testing.B) { benchmark(b, name, 64, 1) })
		b.Run(name+"-rate", func(b *testing.B) { benchmark(b, name, 64, 1000) })
		b.Run(name+"-large", func(b *testing.B) { benchmark(b, name, segmentSize, 1) })
	}
}

func benchmark(b *testing.B, name string, size, burst int) {
	p, err := newPlan(&Config{Members: 32, Size: size, Rounds: burst}, name, 0)
	if err != nil {
		b.Fatal(err)
	}
	p.burst = burst
	g, err := newLocal(p)
	if err != nil {
		b.Fatal(err)
	}
	defer g.close()
	took := time.Duration(0) // without settling
	for b.Loop() {
		o, err := g.broadcast(b.Context(), limitOfBurst)
		if err != nil || o.complete < burst {
			b.Fatal(o, err)
		}
		took += o.took
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N*burst), "µs/message")
}
