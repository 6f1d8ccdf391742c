package collective

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pleach-go/pleach/internal/testutil"
)

// The golden file has every message of one call of each collective, by each of its
// algorithms, and messages with fields that no short call reaches. Names belong to
// the protocol and not to the code: code may be renamed, messages may not change.
func TestGoldenFrames(t *testing.T) {
	if elementOf[uint16]()&0xc0 != 0 {
		t.Skip("messages say how the sender's memory is laid out: recorded is that of 64 bits, little endian")
	}
	encoded := goldenNotices(t)
	for name, h := range goldenHeads() {
		encoded[name] = h.bytes()
	}
	for _, c := range goldenCalls() {
		maps.Copy(encoded, c.record(t))
		if t.Failed() {
			return // what is wrong would be with the next ones, too, and they would wait for it
		}
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	for name, want := range goldenHeads() {
		if got, body, err := parse(recorded[name], math.MaxInt); err != nil || !reflect.DeepEqual(got, want) || len(body) > 0 {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	if t.Failed() {
		return // calls would wait for messages that they do not understand
	}
	for _, c := range goldenCalls() {
		c.replay(t, recorded)
	}
	checkGoldenNotices(t, recorded)
	checkGoldenKinds(t, recorded)
}

// goldenWords are the protocol's words for messages.
var goldenWords = map[byte]string{
	byte(letter): "message", byte(news): "progress", byte(question): "progress-query", byte(abort): "abort",
	byte(vote): "agreement-vote", byte(store): "agreement-accept", byte(stored): "agreement-accepted", byte(commit): "agreement-commit",
	byte(revocation): "revocation", byte(within): "nested",
}

// goldenHeads are messages without a body, by themselves.
func goldenHeads() map[string]head {
	heads := map[string]head{
		"progress large": {
			what: news, number: math.MaxUint64, step: math.MaxUint32, view: math.MaxUint32, low: math.MaxUint64, floor: math.MaxUint64,
			signature: signature{kind: shrinking, strength: corrected, element: 0xff, root: math.MaxInt32, length: math.MaxInt64, detail: math.MaxUint64},
		},
		"message large": {
			what: letter, number: 1 << 40, from: math.MaxUint32, to: math.MaxUint32 - 1, step: 70_000, view: 9, low: 300, floor: 299,
			signature: signature{kind: reducing, strength: report, element: 0x0d, root: 2, length: 1 << 33, detail: 0x1122334455667788},
		},
	}
	for w, word := range goldenWords {
		if what(w) != within {
			heads[word+" zero"] = head{what: what(w)}
		}
	}
	return heads
}

// A goldenCall is one call among some tasks. Its elements read the same from both
// ends, in memory and in sums.
type goldenCall struct {
	name  string
	size  int
	short bool // algorithms for long messages are taken for short ones
	call  func(ctx context.Context, w Place) (any, error)
}

func goldenElements(task, n int) []uint16 {
	in := make([]uint16, n)
	for i := range in {
		in[i] = 0x0101 * uint16(1+task*3+i%3)
	}
	return in
}

func goldenParts(w Place, n int) (parts [][]uint16) {
	for to := range w.Size() {
		parts = append(parts, goldenElements(w.Rank(), (n+to)%4))
	}
	return parts
}

func goldenCalls() []goldenCall {
	type ctx = context.Context
	sum := Sum[uint16]()
	reduce := func(options ...Option) func(c ctx, w Place) (any, error) {
		return func(c ctx, w Place) (any, error) {
			return Reduce(c, w, 1, goldenElements(w.Rank(), 33), sum, options...)
		}
	}
	allreduce := func(n int, options ...Option) func(c ctx, w Place) (any, error) {
		return func(c ctx, w Place) (any, error) {
			return Allreduce(c, w, goldenElements(w.Rank(), n), sum, options...)
		}
	}
	broadcast := func(c ctx, w Place) (any, error) { return Broadcast(c, w, 1, goldenElements(w.Rank(), 33)) }
	swap := func(c ctx, w Place) (any, error) { return Alltoall(c, w, goldenParts(w, 1)) }
	return []goldenCall{
		{"barrier", 3, false, func(c ctx, w Place) (any, error) { return nil, Barrier(c, w) }},
		{"barrier report", 3, false, func(c ctx, w Place) (any, error) { return nil, Barrier(c, w, Report()) }},
		{"broadcast tree", 4, false, broadcast},
		{"broadcast chain", 3, true, broadcast},
		{"broadcast codec", 3, false, func(c ctx, w Place) (any, error) {
			return Broadcast(c, w, 0, []string{"one", "two"}, WithCodec[string](goldenCodec{}))
		}},
		{"scatter", 4, false, func(c ctx, w Place) (any, error) { return Scatter(c, w, 1, goldenParts(w, 2)) }},
		{"gather", 4, false, func(c ctx, w Place) (any, error) { return Gather(c, w, 1, goldenElements(w.Rank(), w.Rank())) }},
		{"reduce tree", 4, false, reduce()},
		{"reduce chain", 3, true, reduce()},
		{"reduce corrected", 4, false, reduce(Corrected(1))},
		{"allreduce doubling", 3, false, allreduce(2)},
		{"allreduce halving", 4, true, allreduce(16)},
		{"allreduce empty", 2, false, allreduce(0)},
		{"allreduce corrected", 4, false, allreduce(2, Corrected(1))},
		{"allgather", 3, false, func(c ctx, w Place) (any, error) { return Allgather(c, w, goldenElements(w.Rank(), w.Rank())) }},
		{"reducescatter", 3, false, func(c ctx, w Place) (any, error) { return ReduceScatter(c, w, goldenParts(w, 1), sum) }},
		{"alltoall pairwise", 4, false, swap},
		{"alltoall together", 4, true, swap},
		{"scan", 3, false, func(c ctx, w Place) (any, error) { return Scan(c, w, goldenElements(w.Rank(), 2), sum) }},
		{"agree", 3, false, func(c ctx, w Place) (any, error) { return Agree(c, w, ^(uint64(1) << w.Rank())) }},
		{"shrink and barrier", 3, false, func(c ctx, w Place) (any, error) {
			inner, err := Shrink(c, w)
			if err != nil {
				return nil, err
			}
			return inner.Size(), Barrier(c, inner)
		}},
	}
}

// goldenCodec writes strings with a line each.
type goldenCodec struct{}

func (goldenCodec) Append(dst []byte, in []string) ([]byte, error) {
	return append(dst, strings.Join(in, "\n")...), nil
}

func (goldenCodec) Decode(b []byte) ([]string, error) { return strings.Split(string(b), "\n"), nil }

// nameOf names a message by the call, its two ends and, of a message between
// tasks, its step.
func (c *goldenCall) nameOf(from, to int, message []byte) string {
	name := fmt.Sprintf("%s %d to %d %s", c.name, from, to, goldenWords[message[0]])
	if what(message[0]) == within {
		message = message[nameSize:]
		name += " " + goldenWords[message[0]]
	}
	if what(message[0]) == letter {
		h, _, _ := parse(message, c.size)
		name += fmt.Sprintf(" step %d", h.step)
	}
	return name
}

// linkFunc is a link that is a function.
type linkFunc func(to int, message []byte)

func (f linkFunc) Send(_ context.Context, to int, head, body []byte) error {
	f(to, slices.Concat(head, body))
	return nil
}

func (c *goldenCall) engine(t *testing.T, rank int, link linkFunc) *Engine {
	e, err := NewEngine(Config{Rank: rank, Size: c.size, View: 1, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	if c.short {
		e.choose = shortChoices()
	}
	return e
}

// timely reports whether a message depends on the call alone. How far others have
// come is asked and told only if a call takes long.
func timely(message []byte) bool {
	if what(message[0]) == within {
		message = message[nameSize:]
	}
	return what(message[0]) != news && what(message[0]) != question
}

// record makes the call as every process, and returns what they have sent.
func (c *goldenCall) record(t *testing.T) map[string][]byte {
	var mu sync.Mutex
	sent := make(map[string][]byte)
	engines := make([]*Engine, c.size)
	for rank := range engines {
		engines[rank] = c.engine(t, rank, func(to int, message []byte) {
			name := c.nameOf(rank, to, message)
			mu.Lock()
			if before, twice := sent[name]; twice && !bytes.Equal(before, message) {
				t.Errorf("%s is sent twice: %x and %x", name, before, message)
			}
			if timely(message) {
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
			if _, err := c.call(soon(t), e.Place()); err != nil {
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
		var e *Engine
		give := func(after what) { // what follows it
			for name, message := range recorded {
				if !strings.HasPrefix(name, c.name+" ") {
					continue
				}
				follows := map[what]what{0: letter, vote: store, store: stored, stored: commit, within: within}
				for from := range c.size {
					if first := what(message[0]); (first == follows[after] || after == 0 && first == vote) && name == c.nameOf(from, rank, message) {
						if err := e.Receive(from, bytes.Clone(message)); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			}
		}
		e = c.engine(t, rank, func(to int, message []byte) {
			if name := c.nameOf(rank, to, message); timely(message) && !bytes.Equal(recorded[name], message) {
				t.Errorf("%s: replayed it is %x, recorded %x", name, message, recorded[name])
			}
			if first := what(message[0]); first >= vote && first <= stored || first == within {
				give(first)
			}
		})
		give(0)
		got, err := c.call(soon(t), e.Place())
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
	case kind == "barrier":
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
		return fmt.Sprint(total(c.size, map[string]int{"doubling": 2, "halving": 16, "corrected": 2}[strings.TrimPrefix(c.name, "allreduce ")]))
	case kind == "reducescatter":
		return fmt.Sprint(total(c.size, (1+rank)%4))
	case kind == "scan":
		return fmt.Sprint(total(rank+1, 2))
	case kind == "agree":
		return fmt.Sprint(^uint64(7))
	}
	return "3"
}

// goldenNotices are messages that a call sends only if something is wrong.
func goldenNotices(t *testing.T) map[string][]byte {
	sent := make(chan []byte, 1)
	c := goldenCall{size: 2}
	e := c.engine(t, 0, func(_ int, message []byte) { sent <- message })
	defer e.Close()
	notices := map[string][]byte{
		// What stands in front of the messages of a world that is made of another.
		"nested context": binary.BigEndian.AppendUint64(nil, uint64(within)<<56|nameOf(nameOf(0, 1), 300)),
	}
	o := &op{number: 300, call: &call{signature: signature{kind: barrier, root: noRoot, length: noLength}}}
	notice := func(name string, err error) {
		m := e.obituary(o, err)
		notices[name] = slices.Concat(m.head, m.body)
	}
	notice("abort mismatch", &MismatchError{Call: 300, Rank: 3, What: "Barrier", Other: 1, OtherWhat: "Agree"})
	notice("abort error", errors.New("it hurts"))
	o.pact, o.call.signature.kind = &pact{number: 6}, agreeing
	notice("abort agreement", errors.New("it hurts"))

	e.mu.Lock()
	e.clerk.askAll()
	e.mu.Unlock()
	notices["progress-query"] = <-sent
	if err := e.Receive(1, bytes.Clone(notices["progress-query"])); err != nil {
		t.Error(err)
	}
	notices["progress"] = <-sent
	e.Place().Revoke()
	notices["revocation"] = <-sent
	return notices
}

func checkGoldenNotices(t *testing.T, recorded map[string][]byte) {
	for name, want := range map[string]error{
		"abort mismatch":  &MismatchError{Call: 300, Rank: 3, What: "Barrier", Other: 1, OtherWhat: "Agree"},
		"abort error":     &AbortError{Call: 300, What: "Barrier", Rank: 1, Reason: "it hurts"},
		"abort agreement": &AbortError{Call: 300, What: "Agree", Rank: 1, Reason: "it hurts"},
	} {
		h, body, err := parse(recorded[name], 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := parseAbort(1, &h, body); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	if h, _, _ := parse(recorded["abort agreement"], 2); h.low != 7 {
		t.Errorf("abort agreement is of agreement %d", h.low)
	}
	var revoked *RevokedError
	c := goldenCall{size: 2}
	e := c.engine(t, 1, func(int, []byte) {})
	defer e.Close()
	if err := e.Receive(0, bytes.Clone(recorded["revocation"])); err != nil {
		t.Error(err)
	}
	if err := Barrier(soon(t), e.Place()); !errors.As(err, &revoked) || revoked.By != 0 {
		t.Errorf("revocation: %v", err)
	}
}

// checkGoldenKinds finds messages, collectives and reactions to failure that are
// known, but not recorded.
func checkGoldenKinds(t *testing.T, recorded map[string][]byte) {
	testutil.EveryKind(t, recorded, 0, func(message []byte) bool {
		_, _, err := parse(message, math.MaxInt)
		return err == nil
	})
	var first, kinds, strengths [256]bool
	for name, message := range recorded {
		first[message[0]] = true
		if what(message[0]) != within && !strings.HasSuffix(name, "large") {
			kinds[message[1]], strengths[message[3]] = true, true
		}
	}
	for w := letter; w <= within; w++ {
		if !first[w] {
			t.Errorf("no message of type %d is recorded", w)
		}
	}
	for k := range kind(math.MaxUint8) {
		if !kinds[k] && !strings.HasPrefix(k.String(), "collective ") {
			t.Errorf("no message of %v is recorded", k)
		}
	}
	for s := range strength(math.MaxUint8) {
		if !strengths[s] && !strings.HasPrefix(s.String(), "strength ") {
			t.Errorf("no message of a call that is %v is recorded", s)
		}
	}
}
