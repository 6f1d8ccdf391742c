package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// notes is a link that writes down what is sent.
type notes struct {
	mu   sync.Mutex
	sent []string
}

func (n *notes) Send(_ context.Context, to int, head, _ []byte) error {
	h, _, err := parseHeader(head, 64)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent = append(n.sent, fmt.Sprintf("type %d to %d, low-water mark %d", h.msgType, to, h.lowWater))
	return nil
}

// expect compares what was sent since the last time.
func (n *notes) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.sent, want) {
		t.Errorf("%s, sent %q, want %q", when, n.sent, want)
	}
	n.sent = nil
}

// finishCall makes a call in which every task but this process's own waits for task 7.
func finishCall(t *testing.T, e *Engine) {
	t.Helper()
	s := Signature{Kind: Gather, Root: 0, Length: NoLength}
	err := e.Comm().Do(t.Context(), s, func(task *Task) error {
		if task.Own() {
			return nil
		}
		_, err := task.Receive(7, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A process that takes over a task asks only those that it waits for: one message, and one
// answer, in a group of any size. It asks again when another process has taken over the task
// whose message it waits for.
func TestNewOwnerAsksOnlyThoseItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &notes{}
		e, err := New(Config{Rank: 5, Size: 64, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		finishCall(t, e)
		live := slices.DeleteFunc(everyRank(64), func(r int) bool { return r == 4 })
		e.Install(1, live)
		link.expect(t, "after a view without task 4's owner", "type 10 to 7, low-water mark 0")
		live = slices.DeleteFunc(live, func(r int) bool { return r == 7 })
		e.Install(2, live)
		link.expect(t, "after a view without task 7's owner", "type 10 to 8, low-water mark 0")
		if err := e.Receive(8, joined((&progressReport{lowWater: 1}).bytes())); err != nil {
			t.Fatal(err)
		}
		if n := e.Comm().LoggedCalls(); n != 0 {
			t.Errorf("%d calls are left, although all processes have finished all", n)
		}
		link.expect(t, "after the answer")
	})
}

// A process that is asked answers at once, after each view, and when the low-water mark
// rises, until no call is left that it was asked about.
func TestQueryIsAnsweredUntilTheCallIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &notes{}
		e, err := New(Config{Rank: 7, Size: 64, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for range 3 {
			finishCall(t, e)
		}
		receive := func(message []byte) {
			if err := e.Receive(5, message); err != nil {
				t.Fatal(err)
			}
		}
		receive((&query{call: 1, view: 1}).bytes())
		link.expect(t, "before the view", "type 2 to 5, low-water mark 0")
		e.Install(1, slices.DeleteFunc(everyRank(64), func(r int) bool { return r == 4 }))
		link.expect(t, "after the view", "type 2 to 5, low-water mark 0")
		for lowWater := range uint64(2) {
			receive(joined((&progressReport{lowWater: lowWater + 1}).bytes()))
			link.expect(t, "when the mark has risen", fmt.Sprintf("type 2 to 5, low-water mark %d", lowWater+1))
		}
		receive(joined((&progressReport{lowWater: 3}).bytes()))
		link.expect(t, "about other calls")
	})
}
