package engine

import (
	"context"
	"testing"
	"time"
)

// A process that other programs preempt stops looking, for longer each time, and
// looks again as often as before when that pays.
func TestPreemptedLooksEnd(t *testing.T) {
	var l looker
	l.init(&Config{})
	looks := func(waits int, o outcome) (n int) {
		for range waits {
			if l.due() {
				n++
				l.note(o)
			}
		}
		return n
	}
	if n := looks(100, found) + looks(100, late); n != 200 {
		t.Errorf("%d of 200 waits look where it hurts nobody", n)
	}
	if n := looks(10*maxPause, preempted); n > 20 {
		t.Errorf("%d of %d waits look and are preempted", n, 10*maxPause)
	}
	looks(maxPause, found)
	if n := looks(1000, found); n != 1000 {
		t.Errorf("%d of 1000 waits look where it pays again", n)
	}
	looks(1, preempted)
	if n := looks(minPause, found); n > minPause/2 {
		t.Errorf("%d of %d waits look after one that was preempted", n, minPause)
	}
}

// A time that was asked for counts, and no time at all.
func TestLooksByConfig(t *testing.T) {
	var asked, never looker
	asked.init(&Config{PollTime: time.Second})
	never.init(&Config{PollTime: -1})
	for range 100 {
		if !asked.due() || never.due() {
			t.Fatal("a look that was not asked for, or none that was")
		}
		asked.note(preempted)
	}
}

// polledLink delivers a message when it is polled for the third time.
type polledLink struct {
	engine  *Engine
	message []byte
	polls   int
	rests   int
}

func (*polledLink) Send(context.Context, int, []byte, []byte) error { return nil }

func (l *polledLink) Poll(from int) (received, ok bool) {
	l.polls++
	if l.polls == 3 {
		return true, l.engine.Receive(from, l.message) == nil
	}
	return false, true
}

func (l *polledLink) Rest() { l.rests++ }

// A call takes a message that it finds by polling, and does not wait for it otherwise.
func TestCallsTakeWhatTheyPoll(t *testing.T) {
	link := &polledLink{}
	e, err := New(Config{Rank: 0, Size: 2, Link: link, PollTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := Signature{Kind: Barrier, Root: NoRoot, Length: NoLength}
	m := taskMessage{signature: s, envelope: envelope{step: 0, from: 1, to: 0}}
	link.engine, link.message = e, m.append(nil)
	err = e.Comm().Do(t.Context(), s, func(task *Task) error {
		_, err := task.Receive(1, 0)
		return err
	})
	if err != nil || link.polls != 3 || link.rests != 0 {
		t.Errorf("after %d polls, %d rests: %v", link.polls, link.rests, err)
	}
}
