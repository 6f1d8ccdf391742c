package group_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A receipt comes when everybody has it, also if somebody dies meanwhile.
func TestStable(t *testing.T) {
	groups := joinWhole(t, 9, nil)
	meet(t, groups)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 5 {
		if err := groups[0].Broadcast(ctx, make([]byte, 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	receipt, err := groups[0].WaitStable(ctx)
	if err != nil || len(receipt.Members) != 9 {
		t.Fatalf("receipt %+v, %v", receipt, err)
	}
	if err := groups[4].Abort(); err != nil {
		t.Fatal(err)
	}
	if err := groups[0].Broadcast(ctx, []byte("one is dead")); err != nil {
		t.Fatal(err)
	}
	receipt, err = groups[0].WaitStable(ctx)
	if err != nil || slices.ContainsFunc(receipt.Members, func(m pleach.Member) bool { return m.Rank == 4 }) ||
		len(receipt.Members) != 8 {
		t.Fatalf("receipt %+v, %v", receipt, err)
	}
}

// Where a dead member is never removed, nothing is stable, and who is silent is
// named.
func TestStableSaysWhoIsSilent(t *testing.T) {
	groups, network := joinMem(t, 4)
	network.Kill(2)
	if err := groups[0].Broadcast(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	var err error
	testutil.Eventually(t, "rank 2 alone is silent", func() bool { // the others answer, later on a busy host
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err = groups[0].WaitStable(ctx)
		unstable, ok := errors.AsType[*pleach.UnstableError](err)
		return ok && slices.Equal(unstable.Unanswered, []int{2}) && errors.Is(err, context.DeadlineExceeded)
	}, func() any { return err })
}

// A member that has lost something is in no receipt: the error names it, and once it
// is out of the view there is a receipt without it.
func TestStableNamesWhoHasLost(t *testing.T) {
	groups := joinWhole(t, 4, func(c *pleach.Config) {
		c.Limits.KeepBytes, c.Limits.InboxBytes, c.Limits.Overflow = 128<<10, 64<<10, pleach.Drop
	})
	meet(t, groups)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	take := func(r int) {
		for range groups[r].Messages(ctx) {
		}
	}
	go take(1)
	go take(3)
	for range 100 {
		if err := groups[0].Broadcast(ctx, make([]byte, 16<<10)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Eventually(t, "50 refused messages", func() bool { return groups[2].Stats().Refused >= 50 })
	go take(2) // too late
	var err error
	var lost *pleach.IncompleteError
	testutil.Within(time.Minute, func() bool { // one that reads may be late, too, and say so first
		_, err = groups[0].WaitStable(ctx)
		return !errors.As(err, &lost) || slices.Contains(lost.Ranks, 2)
	})
	if !errors.As(err, &lost) || !slices.Contains(lost.Ranks, 2) || groups[2].Stats().Lost == 0 {
		t.Fatalf("%v, and rank 2 has counted %+v", err, groups[2].Stats())
	}
	closed := make(map[int]bool)
	receipt := pleach.Receipt{}
	for err != nil && ctx.Err() == nil { // until the view is there
		if errors.As(err, &lost) {
			for _, r := range lost.Ranks { // one that reads may be late, too
				if !closed[r] {
					closed[r] = true
					if err := groups[r].Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		receipt, err = groups[0].WaitStable(ctx)
	}
	if err != nil || slices.ContainsFunc(receipt.Members, func(m pleach.Member) bool { return m.Rank == 2 }) {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
}
