package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// low returns the low-water mark.
func low(e *Engine) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.lowWater
}

// quiet returns the engine of rank 0 of 3, which keeps 4 calls and has made none.
func quiet(t *testing.T) *Engine {
	t.Helper()
	e, err := New(Config{Size: 3, KeepCalls: 4, Link: &counter{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func barrier(call uint64, lowWater uint64) []byte {
	m := taskMessage{
		signature: Signature{Kind: Barrier, Root: NoRoot, Length: NoLength}, call: call,
		envelope: envelope{from: 1}, lowWater: lowWater,
	}
	return m.append(nil)
}

func voteOf(number uint64, kind Kind) []byte {
	m := agreementMessage{
		phase: typeVote, signature: Signature{Kind: kind, Root: NoRoot, Length: NoLength},
		call: unnumbered, number: number,
	}
	return joined(m.bytes())
}

// What arrives may be ahead of this process by so much and no more, and comes from a process of
// the job. What is refused leaves nothing behind.
func TestMessagesAtTheirBounds(t *testing.T) {
	for name, c := range map[string]struct {
		from    int
		message []byte
		taken   bool
	}{
		"the last rank":          {2, barrier(0, 0), true},
		"a rank too high":        {3, barrier(0, 0), false},
		"no rank":                {-1, barrier(0, 0), false},
		"as far ahead as may be": {1, barrier(7, 0), true},
		"a call further":         {1, barrier(8, 0), false},
		"the last agreement":     {1, voteOf(3, Agree), true},
		"one further":            {1, voteOf(4, Agree), false},
		"agreement on a barrier": {1, voteOf(0, Barrier), false},
		"nothing":                {1, nil, false},
	} {
		e := quiet(t)
		err := e.Receive(c.from, c.message)
		if (err == nil) != c.taken || err != nil && !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
		if kept := len(e.calls.byNumber) + len(e.agreements.byNumber); (kept == 1) != c.taken {
			t.Errorf("%s: %d are kept", name, kept)
		}
	}
}

// A process is one of its job.
func TestRankOfTheJob(t *testing.T) {
	for _, c := range []struct{ rank, size int }{{-1, 3}, {3, 3}, {0, 0}} {
		if _, err := New(Config{Rank: c.rank, Size: c.size, Link: &counter{}}); err == nil {
			t.Errorf("rank %d of %d", c.rank, c.size)
		}
	}
}

// An error of a call that takes too long says who is waited for, and for what.
func TestTimeoutSaysWhoIsMissing(t *testing.T) {
	for _, c := range []struct {
		e    TimeoutError
		want string
	}{
		{TimeoutError{}, "collective: call 3, barrier, in view 2: over"},
		{
			TimeoutError{Waiting: []int{1, 4}},
			"collective: call 3, barrier, in view 2; no message yet from rank 1, rank 4: over",
		},
		{TimeoutError{Missing: []Missing{{Rank: 5}}}, "collective: call 3, barrier, in view 2; not called yet by " +
			Missing{Rank: 5}.String() + ": over"},
	} {
		c.e.Call, c.e.What, c.e.View, c.e.Err = 3, "barrier", 2, errors.New("over")
		if got := c.e.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A process believes no more of a low-water mark than it has done itself.
func TestLowWaterOfOthers(t *testing.T) {
	e := quiet(t)
	for _, b := range [][]byte{barrier(7, 2), joined((&progressReport{lowWater: 5, next: 5}).bytes())} {
		if err := e.Receive(1, b); err != nil || low(e) != 0 {
			t.Errorf("%v, low-water mark %d", err, low(e))
		}
	}
	s := Signature{Kind: Gather, Root: 0, Length: NoLength}
	for range 3 {
		if err := e.Comm().Do(t.Context(), s, func(*Task) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	report := func(from int, finished uint64, view uint32) {
		t.Helper()
		if err := e.Receive(from, joined((&progressReport{finished: finished, view: view, next: finished}).bytes())); err !=
			nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		from     int
		finished uint64
		view     uint32
		low      uint64
	}{{1, 3, 0, 0}, {2, 2, 1, 0}, {2, 2, 0, 2}, {2, 1, 0, 2}, {2, 9, 0, 3}} {
		report(step.from, step.finished, step.view)
		if low(e) != step.low {
			t.Errorf("step %d: low-water mark %d, want %d", i, low(e), step.low)
		}
	}
	err := e.Receive(1, barrier(2, 0))
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || e.calls.byNumber[2] != nil {
		t.Errorf("a duplicate of a call that is over is kept: %v", err)
	}
}

// A second message of an envelope is dropped, and a call of another kind is a mismatch for the
// process that has made it.
func TestDuplicatesAndOddCalls(t *testing.T) {
	e := quiet(t)
	for range 2 {
		if err := e.Receive(1, barrier(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.calls.byNumber[0].mailbox.all()); n != 1 {
		t.Errorf("%d messages", n)
	}
	err := e.Comm().Do(t.Context(), Signature{Kind: Gather, Root: 0, Length: NoLength}, func(*Task) error { return nil })
	odd := new(MismatchError)
	if !errors.As(err, &odd) || odd.Rank != 0 || odd.Other != 1 || odd.Call != 0 {
		t.Errorf("%v", err)
	}
}

// An agreement that a process gives up fails on the others, too: that one, and not another one.
func TestOthersLearnWhichAgreementIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agree := Signature{Kind: Agree, Root: NoRoot, Length: NoLength}
		link := &keeper{}
		e, err := New(Config{Rank: 1, Size: 3, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Comm().Agree(ctx, agree, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := quiet(t)
		for _, message := range link.to(0) {
			if err := other.Receive(1, message); err != nil {
				t.Fatal(err)
			}
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var gaveUp *AbortError
		if _, err := other.Comm().Agree(soon, agree, 1, 0); !errors.As(err, &gaveUp) {
			t.Errorf("the other process: %v", err)
		}
	})
}

// keeper is a link that keeps what is sent, by receiver.
type keeper struct {
	mu   sync.Mutex
	sent map[int][][]byte
}

func (l *keeper) Send(_ context.Context, to int, head, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent = make(map[int][][]byte)
	}
	l.sent[to] = append(l.sent[to], slices.Concat(head, body))
	return nil
}

func (l *keeper) to(rank int) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[rank]
}

// A process that agrees again and again keeps the last agreements only: others need no more.
func TestFormerAgreementsAreForgotten(t *testing.T) {
	e, err := New(Config{Size: 1, Link: &counter{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for range 10 {
		if _, err := e.Comm().Agree(t.Context(), Signature{Kind: Agree, Root: NoRoot, Length: NoLength}, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.agreements.byNumber); n != 2 {
		t.Errorf("%d agreements are kept", n)
	}
}

// What others have said about an agreement before this process comes to it counts: it has failed
// there, or they have called something else.
func TestAgreementsThatHaveFailedElsewhere(t *testing.T) {
	agree := Signature{Kind: Agree, Root: NoRoot, Length: NoLength}
	aborted := abortNotice{signature: agree, call: unnumbered, agreement: 1, err: errors.New("no reason")}
	for what, c := range map[string]struct {
		message []byte
		is      any
	}{
		"given up":       {joined(aborted.bytes()), new(*AbortError)},
		"something else": {voteOf(0, Shrink), new(*MismatchError)},
	} {
		e := quiet(t)
		if err := e.Receive(1, c.message); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Comm().Agree(t.Context(), agree, 1, 0); !errors.As(err, c.is) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
