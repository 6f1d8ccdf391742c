package pleach_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
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
	if err != nil || slices.Contains(receipt.Members, 4) || len(receipt.Members) != 8 {
		t.Fatalf("receipt %+v, %v", receipt, err)
	}
}

// Where a dead member is never removed, nothing is stable, and who is silent is
// named.
func TestStableSaysWhoIsSilent(t *testing.T) {
	groups, network := joinMem(t, 4)
	network.Kill(2)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := groups[0].Broadcast(ctx, []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err := groups[0].WaitStable(ctx)
	var unstable *pleach.UnstableError
	if !errors.As(err, &unstable) || !slices.Equal(unstable.Unanswered, []int{2}) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
