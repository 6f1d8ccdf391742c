package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The first answers may take as long as any, since nothing is known of the hosts. Later ones may take
// as long as those before them let expect.
func TestAnswersMayTakeWhatTheyTook(t *testing.T) {
	var l lateness
	if limit := l.limit(); limit != maxAnswer {
		t.Errorf("%v for the first answer", limit)
	}
	for range 10 {
		l.note(time.Millisecond)
	}
	if limit := l.limit(); limit != minAnswer {
		t.Errorf("%v for answers that took 1ms", limit)
	}
	for range 100 {
		l.note(100 * time.Millisecond)
	}
	if limit := l.limit(); limit < 100*time.Millisecond || limit > 150*time.Millisecond {
		t.Errorf("%v for answers that took 100ms", limit)
	}
}

// answering is a link to processes that answer whatever they are asked, and send nothing else.
type answering struct{ engine *Engine }

func (a *answering) Send(_ context.Context, to int, _, _ []byte) error {
	go func() { _ = a.engine.Receive(to, joined((&progressReport{}).bytes())) }()
	return nil
}

// A process that answers and does not send its message is waited for, and not for longer than the
// levels below it may take, also if the engine is old.
func TestProcessThatAnswersIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &answering{}
		e, err := New(Config{Size: 3, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		link.engine = e
		testutil.Advance(time.Hour)
		for levels := 1; levels <= 3; levels++ {
			var waited time.Duration
			err = e.Comm().Do(t.Context(), Signature{Kind: Gather, Root: 0, Length: NoLength}, func(task *Task) error {
				began := time.Now()
				messages := []Awaited{{From: levels%2 + 1, Step: 0}}
				err := task.ReceiveInTime(messages, levels)
				waited = time.Since(began)
				e.mu.Lock()
				e.peers.of(messages[0].From).silent = false
				e.mu.Unlock()
				return err
			})
			if least := maxWait * time.Duration(levels); err != nil || waited < least || waited > least+2*maxAnswer {
				t.Errorf("%d levels: waited for %v, %v", levels, waited, err)
			}
		}
	})
}
