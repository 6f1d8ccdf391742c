package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The golden file has every message of one call of each collective, by each of its
// algorithms, and messages with fields that no short call reaches. Names belong to
// the protocol and not to the code: code may be renamed, messages may not change.
func TestGoldenFrames(t *testing.T) {
	if strconv.IntSize != 64 || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("messages say how the sender's memory is laid out: recorded is that of 64 bits, little endian")
	}
	sent := make(chan []byte, 1)
	pair := goldenCall{size: 2}
	e := pair.engine(t, 0, func(_ int, message []byte) { sent <- message })
	defer e.Close()
	encoded := engine.GoldenNotices(t, e, sent)
	maps.Copy(encoded, engine.GoldenHeaders())
	for _, c := range goldenCalls() {
		maps.Copy(encoded, c.record(t))
		if t.Failed() {
			return // what is wrong would be with the next ones, too, and they would wait for it
		}
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	engine.CheckGoldenHeaders(t, recorded)
	if t.Failed() {
		return // calls would wait for messages that they do not understand
	}
	for _, c := range goldenCalls() {
		c.replay(t, recorded)
	}
	engine.CheckGoldenNotices(t, recorded)
	checkGoldenRevocation(t, recorded)
	engine.CheckGoldenKinds(t, recorded)
}

// A goldenCall is one call among some tasks. Its elements read the same from both
// ends, in memory and in sums.
type goldenCall struct {
	name  string
	size  int
	short bool // algorithms for long messages are taken for short ones
	call  func(ctx context.Context, w collective.Comm) (any, error)
}

func goldenElements(task, n int) []uint16 {
	in := make([]uint16, n)
	for i := range in {
		in[i] = 0x0101 * uint16(1+task*3+i%3)
	}
	return in
}

func goldenParts(w collective.Comm, n int) (parts [][]uint16) {
	for to := range w.Size() {
		parts = append(parts, goldenElements(w.Rank(), (n+to)%4))
	}
	return parts
}

func goldenCalls() []goldenCall {
	type ctx = context.Context
	sum := collective.Sum[uint16]()
	reduce := func(options ...collective.Option) func(c ctx, w collective.Comm) (any, error) {
		return func(c ctx, w collective.Comm) (any, error) {
			return collective.Reduce(c, w, 1, goldenElements(w.Rank(), 33), sum, options...)
		}
	}
	allreduce := func(n int, options ...collective.Option) func(c ctx, w collective.Comm) (any, error) {
		return func(c ctx, w collective.Comm) (any, error) {
			return collective.Allreduce(c, w, goldenElements(w.Rank(), n), sum, options...)
		}
	}
	broadcast := func(c ctx, w collective.Comm) (any, error) {
		return collective.Broadcast(c, w, 1, goldenElements(w.Rank(), 33))
	}
	swap := func(c ctx, w collective.Comm) (any, error) { return collective.Alltoall(c, w, goldenParts(w, 1)) }
	return []goldenCall{
		{"barrier", 3, false, func(c ctx, w collective.Comm) (any, error) { return nil, collective.Barrier(c, w) }},
		{"barrier report", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return nil,
				collective.Barrier(c, w, collective.Report())
		}},
		{"broadcast tree", 4, false, broadcast},
		{"broadcast chain", 3, true, broadcast},
		{"broadcast codec", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Broadcast(c, w, 0, []string{"one", "two"}, collective.WithCodec[string](goldenCodec{}))
		}},
		{
			"scatter", 4, false,
			func(c ctx, w collective.Comm) (any, error) { return collective.Scatter(c, w, 1, goldenParts(w, 2)) },
		},
		{"gather", 4, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Gather(c, w, 1, goldenElements(w.Rank(), w.Rank()))
		}},
		{"reduce tree", 4, false, reduce()},
		{"reduce chain", 3, true, reduce()},
		{"reduce corrected", 4, false, reduce(collective.Corrected(1))},
		{"allreduce doubling", 3, false, allreduce(2)},
		{"allreduce halving", 4, true, allreduce(16)},
		{"allreduce empty", 2, false, allreduce(0)},
		{"allreduce corrected", 4, false, allreduce(2, collective.Corrected(1))},
		{"allgather", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Allgather(c, w, goldenElements(w.Rank(), w.Rank()))
		}},
		{"reducescatter", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.ReduceScatter(c, w, goldenParts(w, 1), sum)
		}},
		{"alltoall pairwise", 4, false, swap},
		{"alltoall together", 4, true, swap},
		{"scan", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Scan(c, w, goldenElements(w.Rank(), 2), sum)
		}},
		{"agree", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Agree(c, w,
				^(uint64(1) << w.Rank()))
		}},
		{"shrink and barrier", 3, false, func(c ctx, w collective.Comm) (any, error) {
			inner, err := w.Shrink(c)
			if err != nil {
				return nil, err
			}
			return inner.Size(), collective.Barrier(c, inner)
		}},
		{"admit", 3, false, func(c ctx, w collective.Comm) (any, error) {
			same, err := w.Admit(c)
			return same.Size(), err
		}},
		{"exscan", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Exscan(c, w, goldenElements(w.Rank(), 2), sum)
		}},
		{"once", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return nil, collective.Once(c, w, func(context.Context) error { return nil })
		}},
		{"split", 3, false, func(c ctx, w collective.Comm) (any, error) {
			inner, err := w.Split(c, func(int) int { return 7 })
			return inner.Size(), err
		}},
		{"exchange", 3, false, func(c ctx, w collective.Comm) (any, error) {
			return collective.Exchange(c, w, map[int][]uint16{(w.Rank() + 1) % 3: goldenElements(w.Rank(), 2)})
		}},
		{"finalize", 3, false, func(c ctx, w collective.Comm) (any, error) {
			engine.Comm(w).Engine().Finalize()
			return collective.Agree(c, w, 1)
		}},
	}
}

// goldenCodec writes strings with a line each.
type goldenCodec struct{}

func (goldenCodec) Append(dst []byte, in []string) ([]byte, error) {
	return append(dst, strings.Join(in, "\n")...), nil
}

func (goldenCodec) Decode(b []byte) ([]string, error) { return strings.Split(string(b), "\n"), nil }

// linkFunc is a link that is a function.
type linkFunc func(to int, message []byte)

func (f linkFunc) Send(_ context.Context, to int, head, body []byte) error {
	f(to, slices.Concat(head, body))
	return nil
}

func (c *goldenCall) engine(t *testing.T, rank int, link linkFunc) *engine.Engine {
	config := engine.Config{Rank: rank, Size: c.size, View: 1, Link: link}
	if c.short {
		config.Thresholds = engine.Thresholds{Halving: 24, Chain: 24, Tree: 16, Segment: 32, Bruck: 2, BruckPart: 4}
	}
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// record makes the call as every process, and returns what they have sent.
func (c *goldenCall) record(t *testing.T) map[string][]byte {
	var mu sync.Mutex
	sent := make(map[string][]byte)
	engines := make([]*engine.Engine, c.size)
	for rank := range engines {
		engines[rank] = c.engine(t, rank, func(to int, message []byte) {
			name := engine.GoldenName(c.name, c.size, rank, to, message)
			mu.Lock()
			if before, twice := sent[name]; twice && !bytes.Equal(before, message) {
				t.Errorf("%s is sent twice: %x and %x", name, before, message)
			}
			if engine.GoldenTimely(message) {
				sent[name] = bytes.Clone(message)
			}
			mu.Unlock()
			if err := engines[to].Receive(rank, message); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		defer engines[rank].Close()
	}
	var all sync.WaitGroup
	for _, e := range engines {
		all.Go(func() {
			if _, err := c.call(soon(t), comm(e)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	all.Wait()
	return sent
}

// replay makes the call as each process alone, which gets the recorded messages of
// the others: it must have the right result, and answer with what is recorded.
func (c *goldenCall) replay(t *testing.T, recorded map[string][]byte) {
	for rank := range c.size {
		var e *engine.Engine
		give := func(after engine.GoldenType) { // what follows it
			for name, message := range recorded {
				if !strings.HasPrefix(name, c.name+" ") {
					continue
				}
				follows := map[engine.GoldenType]engine.GoldenType{
					0: engine.GoldenMessage, engine.GoldenVote: engine.GoldenAccept, engine.GoldenAccept: engine.GoldenAccepted,
					engine.GoldenAccepted: engine.GoldenCommit, engine.GoldenNested: engine.GoldenNested,
				}
				for from := range c.size {
					if first := engine.GoldenType(message[0]); (first == follows[after] || after == 0 && first == engine.GoldenVote) &&
						name == engine.GoldenName(c.name, c.size, from, rank, message) {
						if err := e.Receive(from, bytes.Clone(message)); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			}
		}
		e = c.engine(t, rank, func(to int, message []byte) {
			if name := engine.GoldenName(c.name, c.size, rank, to, message); engine.GoldenTimely(message) &&
				!bytes.Equal(recorded[name], message) {
				t.Errorf("%s: replayed it is %x, recorded %x", name, message, recorded[name])
			}
			if first := engine.GoldenType(message[0]); first >= engine.GoldenVote && first <= engine.GoldenAccepted ||
				first == engine.GoldenNested {
				give(first)
			}
		})
		give(0)
		got, err := c.call(soon(t), comm(e))
		e.Close()
		if want := c.want(rank); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: rank %d gets %v, %v, want %s", c.name, rank, got, err, want)
		}
	}
}

// want is what a call returns, calculated by hand.
func (c *goldenCall) want(rank int) string {
	total := func(upTo, n int) []uint16 {
		sum := make([]uint16, n)
		for task := range upTo {
			for i, v := range goldenElements(task, n) {
				sum[i] += v
			}
		}
		return sum
	}
	var all [][]uint16
	for task := range c.size {
		switch {
		case strings.HasPrefix(c.name, "alltoall"):
			all = append(all, goldenElements(task, (1+rank)%4))
		default:
			all = append(all, goldenElements(task, task))
		}
	}
	switch kind, _, _ := strings.Cut(c.name, " "); {
	case kind == "barrier" || kind == "once":
		return "<nil>"
	case c.name == "broadcast codec":
		return "[one two]"
	case kind == "broadcast":
		return fmt.Sprint(goldenElements(1, 33))
	case kind == "scatter":
		return fmt.Sprint(goldenElements(1, (2+rank)%4))
	case (kind == "gather" || kind == "reduce") && rank != 1:
		return "[]"
	case kind == "gather", kind == "allgather", kind == "alltoall":
		return fmt.Sprint(all)
	case kind == "reduce":
		return fmt.Sprint(total(c.size, 33))
	case kind == "allreduce":
		return fmt.Sprint(total(c.size, map[string]int{
			"doubling": 2, "halving": 16,
			"corrected": 2,
		}[strings.TrimPrefix(c.name, "allreduce ")]))
	case kind == "reducescatter":
		return fmt.Sprint(total(c.size, (1+rank)%4))
	case kind == "scan":
		return fmt.Sprint(total(rank+1, 2))
	case kind == "exscan" && rank == 0:
		return "[]"
	case kind == "exscan":
		return fmt.Sprint(total(rank, 2))
	case kind == "exchange":
		from := (rank + 2) % 3
		return fmt.Sprint(map[int][]uint16{from: goldenElements(from, 2)})
	case kind == "finalize":
		return "1"
	case kind == "agree":
		return fmt.Sprint(^uint64(7))
	}
	return "3"
}

// checkGoldenRevocation has an engine receive a revocation.
func checkGoldenRevocation(t *testing.T, recorded map[string][]byte) {
	var revoked *collective.RevokedError
	c := goldenCall{size: 2}
	e := c.engine(t, 1, func(int, []byte) {})
	defer e.Close()
	if err := e.Receive(0, bytes.Clone(recorded["revocation"])); err != nil {
		t.Error(err)
	}
	if err := collective.Barrier(soon(t), comm(e)); !errors.As(err, &revoked) || revoked.By != 0 {
		t.Errorf("revocation: %v", err)
	}
}

func comm(e *engine.Engine) collective.Comm { return collective.Comm(e.Comm()) }

// soon is a context that bounds a call that would wait for ever.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
