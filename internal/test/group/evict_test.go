package group_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// An eviction that the group withdraws, because another one leaves it without a quorum, ends with an
// error and not with the operator's deadline.
func TestEvictionsThatExcludeEachOther(t *testing.T) {
	for range 5 {
		groups := joinWhole(t, 3, func(c *pleach.Config) { c.Detection.SuspicionTimeout = time.Minute })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		operator := pleach.Config{Group: "whole"}
		var evicting sync.WaitGroup
		errs := make([]error, 2)
		for i, id := range []string{groups[1].Self().ID, groups[0].Self().ID} { // each by the other one
			evicting.Go(func() { _, errs[i] = pleach.Evict(ctx, operator, groups[i].Self().Address, id) })
		}
		evicting.Wait()
		for _, err := range errs {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		cancel()
	}
}
