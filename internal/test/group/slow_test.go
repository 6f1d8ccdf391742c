package group_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// A program that receives nothing blocks the sender, and is out of the view after
// SlowTimeout: it learns that, and the others have everything.
func TestProgramThatReceivesNothingLeaves(t *testing.T) {
	const size, messages, bytes = 4, 64, 1 << 20
	groups := joinWhole(t, size, func(c *pleach.Config) { c.Limits.SlowTimeout = time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	slow := groups[3]
	got := make(chan int, size)
	for _, g := range groups[1:3] {
		go func() {
			n := 0
			for _, err := range g.Messages(ctx) {
				if err != nil {
					t.Errorf("rank %d: %v", g.Rank(), err)
				}
				n++
				if n == messages {
					break
				}
			}
			got <- n
		}()
	}
	began := time.Now()
	for i := range messages {
		if err := groups[0].Broadcast(ctx, numbered(0, i, bytes)); err != nil {
			t.Fatal(err)
		}
	}
	receipt, err := groups[0].WaitStable(ctx)
	if err != nil || len(receipt.Members) != size-1 {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
	t.Logf("%d MiB took %v", messages, time.Since(began))
	for range 2 {
		if n := <-got; n != messages {
			t.Errorf("%d of %d messages", n, messages)
		}
	}
	if err := slow.Err(); !errors.Is(err, pleach.ErrTooSlow) {
		t.Errorf("the slow member's Err is %v", err)
	}
}
