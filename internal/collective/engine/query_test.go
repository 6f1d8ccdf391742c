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

// rank5Of64 starts the process of rank 5 of 64. It has the tasks of rank 4 if that dies.
func rank5Of64(t *testing.T, link Link) *Engine {
	t.Helper()
	e, err := New(Config{Rank: 5, Size: 64, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// A process that takes over a task asks only those that it waits for: one message, and one
// answer, in a group of any size. It asks again when another process has taken over the task
// whose message it waits for.
func TestNewOwnerAsksOnlyThoseItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &notes{}
		e := rank5Of64(t, link)
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

// Tasks of several calls that wait for the same process are one question, about the last of them, and
// a process does not ask itself.
func TestNewOwnerAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &notes{}
		e := rank5Of64(t, link)
		finishCall(t, e)
		finishCall(t, e)
		e.Install(1, slices.DeleteFunc(everyRank(64), func(r int) bool { return r == 4 }))
		synctest.Wait()
		link.sent = nil
		e.mu.Lock()
		e.query(e.calls.byNumber[0], envelope{0, 7, 4})
		e.query(e.calls.byNumber[1], envelope{0, 5, 4})
		e.mu.Unlock()
		link.expect(t, "about what was asked, and what is known here")
	})
}

// A part of a taken-over task that all others have finished need not be run. The calls after it then
// count as finished at once, although it still runs: others may wait for that.
func TestCallsAfterTrimmedOneAreFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rank5Of64(t, &notes{})
		busy := make(chan struct{})
		for call := range 2 {
			err := e.Comm().Do(t.Context(), Signature{Kind: Gather, Root: 0, Length: NoLength}, func(task *Task) error {
				if !task.Own() && call == 0 {
					<-busy // it does not look whether it is needed
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		finished := func() uint64 {
			synctest.Wait()
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.calls.finished
		}
		e.Install(1, slices.DeleteFunc(everyRank(64), func(r int) bool { return r == 4 }))
		if n := finished(); n != 0 {
			t.Errorf("%d calls are finished, and a part of the first runs", n)
		}
		if err := e.Receive(7, joined((&progressReport{lowWater: 1}).bytes())); err != nil {
			t.Fatal(err)
		}
		if n := finished(); n != 2 {
			t.Errorf("%d of 2 calls are finished", n)
		}
		close(busy)
	})
}

// Only messages to tasks that have moved are sent again.
func TestOnlyMovedTasksGetTheirMessagesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &notes{}
		e := rank5Of64(t, link)
		err := e.Comm().Do(t.Context(), Signature{Kind: Gather, Root: 0, Length: NoLength}, func(task *Task) error {
			if !task.Own() {
				return nil
			}
			for _, to := range []int{6, 40, 7} {
				if err := task.Send(to, 0, []byte("message")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		link.expect(t, "in the call", "type 1 to 6, low-water mark 0", "type 1 to 40, low-water mark 0",
			"type 1 to 7, low-water mark 0")
		e.Install(1, slices.DeleteFunc(everyRank(64), func(r int) bool { return r == 40 }))
		link.expect(t, "after a view without task 40's owner", "type 1 to 41, low-water mark 0")
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
