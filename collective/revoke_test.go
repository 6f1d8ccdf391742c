package collective

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A process that revokes may die while it tells the others. Then the processes that know
// tell the rest. So all live processes learn of it or none does, at whichever of its
// messages it dies.
func TestRevokerDies(t *testing.T) {
	for at := 1; at <= 2*revokedSize; at++ {
		for seed := range uint64(4) {
			synctest.Test(t, func(t *testing.T) { revokeAndDie(t, at, seed) })
		}
	}
}

const revokedSize, revoker = 5, 2

// revokeAndDie kills the revoker at one of its events. Time is virtual.
func revokeAndDie(t *testing.T, at int, seed uint64) {
	n := newNetwork(t, revokedSize, seed)
	defer n.close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
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
			testutil.Within(patience, func() bool {
				n.mu.Lock()
				n.event(revoker) // so that it dies, though no message may arrive
				n.mu.Unlock()
				return !w.alive() || ctx.Err() != nil
			})
			return nil
		case 1: // busy, until nothing is on its way any more
			testutil.Within(patience, func() bool { return slices.Contains(w.Failed(), revoker) || ctx.Err() != nil })
			time.Sleep(time.Millisecond)
		}
		return Barrier(ctx, w)
	})
	var revoked *RevokedError
	know := errors.As(errs[0], &revoked)
	for r, err := range errs {
		if r != revoker && (errors.As(err, &revoked) != know || !know && err != nil || know && revoked.By != revoker) {
			t.Fatalf("killed at %d, seed %d: rank %d: %v; rank 0: %v", at, seed, r, err, errs[0])
		}
	}
}
