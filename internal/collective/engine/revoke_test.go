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
