package collective

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Whoever revokes may die while it tells the others: then those who know tell the
// rest. So all who live learn of it, or nobody does, at whichever of its messages
// it dies.
func TestRevokerDies(t *testing.T) {
	const size, revoker = 5, 2
	for at := 1; at <= 2*size; at++ {
		for seed := range uint64(4) {
			n := newNetwork(t, size, seed)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			errs := n.each(func(w Comm) error {
				if err := Barrier(ctx, w); err != nil {
					return err
				}
				switch w.Rank() {
				case revoker:
					n.mu.Lock()
					n.killAt[revoker] = n.events[revoker] + at
					n.mu.Unlock()
					w.Revoke()
					for w.alive() && ctx.Err() == nil {
						n.mu.Lock()
						n.event(revoker) // so that it dies, though nobody may write to it
						n.mu.Unlock()
						time.Sleep(time.Millisecond)
					}
					return nil
				case 1: // busy, until nothing is on its way any more
					for !slices.Contains(w.Failed(), revoker) && ctx.Err() == nil {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(10 * time.Millisecond)
				}
				return Barrier(ctx, w)
			})
			cancel()
			n.close()
			var revoked *RevokedError
			know := errors.As(errs[0], &revoked)
			for r, err := range errs {
				if r != revoker && (errors.As(err, &revoked) != know || !know && err != nil || know && revoked.By != revoker) {
					t.Fatalf("killed at %d, seed %d: rank %d: %v; rank 0: %v", at, seed, r, err, errs[0])
				}
			}
		}
	}
}

// counter is a link that counts what is sent.
type counter struct{ sent atomic.Int32 }

func (c *counter) Send(context.Context, int, []byte, []byte) error {
	c.sent.Add(1)
	return nil
}

// While who has revoked lives, it alone tells the others: a message for each, not one
// from each to each.
func TestRevocationIsToldOnce(t *testing.T) {
	const size, revoker = 5, 2
	for rank, want := range map[int]int32{revoker: size - 1, 1: 0} {
		link := &counter{}
		e, err := NewEngine(Config{Rank: rank, Size: size, Link: link})
		if err != nil {
			t.Fatal(err)
		}
		if rank == revoker {
			e.Comm().Revoke()
		} else if err := e.Receive(revoker, (&header{msgType: typeRevocation, from: revoker}).bytes()); err != nil {
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
