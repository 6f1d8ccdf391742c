package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A process that is alone, from the start or since the others have died, makes as many calls as it
// likes: there is no other process that it could be ahead of, and none that reports progress.
func TestAloneIsNeverAhead(t *testing.T) {
	for _, size := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			e, err := New(Config{Size: size, View: 1, KeepCalls: 4, Link: silentLink{}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			e.Install(2, []int{0})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 20 {
				if err := e.Comm().Do(ctx, Signature{Kind: Gather, Root: 0, Length: NoLength},
					func(*Task) error { return nil }); err != nil {
					t.Fatalf("of %d: %v", size, err)
				}
			}
		})
	}
}
