package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// sentProcessed returns the numbers in the acknowledgments of processing that a member sends to a
// rank.
func sentProcessed(m *Member, to protocol.Rank) (numbers []uint64) {
	for _, s := range drain(m, 1) {
		if f, err := parse(s.frame); err == nil && f.kind == ack && f.processed && s.to == to {
			numbers = append(numbers, f.first)
		}
	}
	return numbers
}

// A member acknowledges processing when its program has processed what it had of the root when it
// was asked, and all below it have acknowledged. More questions do not delay that.
func TestProcessingIsAcknowledged(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	one := func(number uint64) {
		f := frame{kind: data, begins: true, incarnation: 1, first: number, segment: make([]byte, 10)}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want ...uint64) {
		t.Helper()
		if got := sentProcessed(m, 0); len(got) != len(want) || len(got) > 0 && got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: acknowledges %v, want %v", what, got, want)
		}
	}
	one(0)
	answerTo(t, m, 1, 0, frame{kind: poll, processed: true, first: 1})
	answerTo(t, m, 1, 3, frame{kind: ack, processed: true, first: 2})
	expect("nothing is processed")
	one(1)
	answerTo(t, m, 1, 0, frame{kind: poll, processed: true, first: 2})
	if _, ok := m.Deliver(1); !ok || !m.AwaitsProgram() {
		t.Fatal("there is no message, or nobody waits for the program")
	}
	expect("the program has it in its hands")
	m.NoteProcessed(1, mainQueue, 1)
	expect("the first is processed", 1)
	answerTo(t, m, 1, 0, frame{kind: ack, first: 2})
	answerTo(t, m, 1, 0, frame{kind: poll, processed: true, first: 2})
	expect("asked again", 1)
	m.Deliver(1)
	m.NoteProcessed(1, mainQueue, 2)
	expect("all is processed", 2)
	if m.AwaitsProgram() {
		t.Error("somebody still waits for the program")
	}
}

// A subscription that has nothing of the root holds no acknowledgment up, and one that has does until
// it ends.
func TestProcessingOfSubscriptions(t *testing.T) {
	m := group(t, Config{}, 3)[1]
	id := m.Subscribe("a")
	topical := func(root protocol.Rank) {
		f := frame{
			kind: data, begins: true, labeled: true, root: root, incarnation: 1, first: 0,
			segment: Label{Topic: "a"}.append(nil),
		}
		if err := m.Receive(1, root, f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	topical(2)
	f := frame{kind: data, begins: true, incarnation: 1, segment: make([]byte, 10)}
	if err := m.Receive(1, 0, f.append(nil)); err != nil {
		t.Fatal(err)
	}
	m.Deliver(1)
	m.NoteProcessed(1, mainQueue, 1)
	answerTo(t, m, 1, 0, frame{kind: poll, processed: true, first: 1})
	if got := sentProcessed(m, 0); len(got) != 1 {
		t.Errorf("the message of another root in a subscription: acknowledges %v", got)
	}
	answerTo(t, m, 1, 2, frame{kind: poll, processed: true, root: 2, first: 1})
	if got := sentProcessed(m, 2); len(got) != 0 {
		t.Errorf("not processed in a subscription: acknowledges %v", got)
	}
	m.Unsubscribe(1, id)
	if got := sentProcessed(m, 2); len(got) != 1 {
		t.Errorf("the subscription has ended: acknowledges %v", got)
	}
}

// A queue is stuck when messages wait in it and none was processed for the bound, since it had some.
func TestStuckQueues(t *testing.T) {
	const bound = 100
	m := group(t, Config{}, 2)[1]
	receive := func(number uint64) {
		f := frame{kind: data, begins: true, incarnation: 1, first: number, segment: make([]byte, 10)}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, now protocol.Time, want int) {
		t.Helper()
		if got := m.Stuck(now, bound); len(got) != want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	m.NoteProcessed(1, mainQueue, 0)
	receive(0)
	m.NoteProcessed(1000, mainQueue, 0) // it had nothing for long
	expect("just received", 1000, 0)
	expect("for the bound", 1000+bound, 1)
	m.Deliver(1)
	m.NoteProcessed(1200, mainQueue, 0)
	expect("in the hands of the program", 1200, 0)
	receive(1)
	m.NoteProcessed(1300, mainQueue, 0)
	expect("one waits behind it", 1300, 1)
	m.NoteProcessed(1400, mainQueue, 1)
	expect("it gets on", 1400, 0)
}
