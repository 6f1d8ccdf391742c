package engine

import (
	"context"
	"sync/atomic"
	"testing"
)

// counter is a link that counts what is sent.
type counter struct{ sent atomic.Int32 }

func (c *counter) Send(context.Context, int, []byte, []byte) error {
	c.sent.Add(1)
	return nil
}

// While the process that has revoked lives, it alone tells the others: one message for each,
// not one from each to each.
func TestRevocationIsToldOnce(t *testing.T) {
	const size, revoker = 5, 2
	for rank, want := range map[int]int32{revoker: size - 1, 1: 0} {
		link := &counter{}
		e, err := New(Config{Rank: rank, Size: size, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		if rank == revoker {
			e.Comm().Revoke()
		} else if err := e.Receive(revoker, (&revocationNotice{by: revoker}).bytes()); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.Close()
		if got := link.sent.Load(); got != want {
			t.Errorf("rank %d of %d tells %d others that rank %d has revoked, want %d", rank, size, got, revoker, want)
		}
	}
}

// The report of a process says that the communicator is revoked, whichever rank has done it.
func TestRevocationIsReported(t *testing.T) {
	for by := range 3 {
		e := quiet(t)
		if e.progress()[0].Revoked {
			t.Error("a communicator is revoked from the beginning")
		}
		e.mu.Lock()
		e.revoke(by)
		e.mu.Unlock()
		if !e.progress()[0].Revoked {
			t.Errorf("rank %d has revoked, and it is not reported", by)
		}
	}
}

// What calls have logged in case a process takes over is released when the communicator is
// revoked.
func TestRevocationReleasesTheLog(t *testing.T) {
	e := quiet(t)
	logged := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.log.bytes
	}
	err := e.Comm().Do(t.Context(), Signature{Kind: Gather, Root: 0, Length: NoLength}, func(task *Task) error {
		if err := task.Send(1, 0, []byte("message")); err != nil || logged() == 0 {
			t.Errorf("%v, %d bytes are logged", err, logged())
		}
		e.Comm().Revoke()
		return nil
	})
	if err == nil || logged() != 0 {
		t.Errorf("%v, %d bytes are still logged", err, logged())
	}
}
