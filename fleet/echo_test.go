package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
)

// joinEcho makes a process a member of a zone that receives its own broadcasts.
func joinEcho(t *testing.T, id string, seeds ...string) *fleet.Fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f, err := fleet.Join(ctx, fleet.Config{
		Zone: "ams", Seeds: map[string][]string{"ams": seeds}, Group: pleach.Config{ID: id}, KeepBytes: 64 << 10, Echo: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Abort() })
	return f
}

// With Echo, a process gets its own broadcasts at their place, numbered as others get them; and
// one that joins is told up to where those before it go.
func TestEchoAndBefore(t *testing.T) {
	t.Parallel()
	first := joinEcho(t, "first")
	if got := first.Before(); len(got) > 0 {
		t.Errorf("before the first member of a fleet: %v", got)
	}
	broadcast(t, first, 1, 3)
	second := joinEcho(t, "second", first.Zone().Self().Address)
	before := second.Before()
	if len(before) != 1 || before[0].Zone != "ams" || before[0].ID != "first" || before[0].Seq != 3 {
		t.Fatalf("before the second member: %v", before)
	}
	if first.Born() != second.Born() || first.Born() == 0 {
		t.Errorf("the zone was born at %d and at %d", first.Born(), second.Born())
	}
	broadcast(t, first, 4, 5)
	expect(t, first, "first", 1, 5)
	expect(t, second, "first", 4, 5)
}

// A process that does not receive its own broadcasts waits for that before it makes others.
func TestEchoIsBounded(t *testing.T) {
	t.Parallel()
	f := joinEcho(t, "alone")
	data, sent := make([]byte, 8<<10), 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for ; sent < 100; sent++ {
		if err := f.Broadcast(ctx, data); err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
	}
	if sent == 100 {
		t.Fatal("800 KiB wait in an inbox of 64 KiB")
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error)
	go func() { done <- f.Broadcast(ctx, []byte("last")) }()
	for m := range f.Messages(ctx) {
		if string(m.Data) == "last" {
			break
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
