package group_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// within returns a context that ends with the test, or earlier.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// emptyState is a State of nothing.
type emptyState struct{}

func (emptyState) Snapshot(io.Writer) error { return nil }
func (emptyState) Restore(io.Reader) error  { return nil }

// Case 64: a process whose settings differ where all members must have the same does not join,
// and its error names the setting and both values.
func TestJoinComparesSettings(t *testing.T) {
	ctx := within(t, 20*time.Second)
	for _, c := range []struct {
		member, joiner pleach.Config
		setting        string
		ours, theirs   string
	}{
		{pleach.Config{}, pleach.Config{AllowMinority: true}, "AllowMinority", "true", "false"},
		{pleach.Config{}, pleach.Config{Limits: pleach.Limits{Overflow: pleach.Drop}}, "Limits.Overflow", "Drop", "Block"},
		{pleach.Config{}, pleach.Config{State: emptyState{}}, "State", "set", "not set"},
		{
			pleach.Config{},
			pleach.Config{Detection: pleach.Detection{HeartbeatInterval: time.Second}},
			"Detection.HeartbeatInterval", "1s", "with a SuspicionTimeout of 1.5s",
		},
		{
			pleach.Config{Detection: pleach.Detection{HeartbeatInterval: time.Second}},
			pleach.Config{},
			"Detection.SuspicionTimeout", "1.5s", "with a HeartbeatInterval of 1s",
		},
		{
			pleach.Config{},
			pleach.Config{Limits: pleach.Limits{MaxMessage: 1 << 20}},
			"Limits.MaxMessage", "1048576",
			"1073741824, which the group uses,",
		},
		{
			pleach.Config{Agree: map[string]string{"format": "1", "mine": "x"}},
			pleach.Config{Agree: map[string]string{"format": "2"}},
			"Agree.format", "2", "1",
		},
	} {
		t.Run(c.setting, func(t *testing.T) {
			g, err := pleach.Create(ctx, c.member)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Abort()
			h, err := pleach.Join(ctx, c.joiner, g.Self().Address)
			var differ *pleach.SettingError
			var failed *pleach.JoinError
			if !errors.As(err, &differ) || !errors.Is(err, pleach.ErrRefused) || !errors.As(err, &failed) || !failed.Permanent {
				t.Fatalf("joined %v, error %v", h, err)
			}
			if differ.Setting != c.setting || differ.Ours != c.ours || differ.Theirs != c.theirs ||
				differ.Member != g.Self().Address {
				t.Errorf("%+v", differ)
			}
			if g.Size() != 1 {
				t.Errorf("the group has %d members", g.Size())
			}
		})
	}
}

// Case 64: in a rolling restart that raises Limits.MaxMessage, a member sends only what all can
// receive, and more as soon as the last member that can receive less is gone.
func TestRollingRaiseOfMaxMessage(t *testing.T) {
	ctx := within(t, 30*time.Second)
	low, high := pleach.Config{ID: "low", Limits: pleach.Limits{MaxMessage: 1 << 20}},
		pleach.Config{ID: "high", Limits: pleach.Limits{MaxMessage: 4 << 20}}
	a, err := pleach.Create(ctx, low)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Abort()
	b, err := pleach.Join(ctx, high, a.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	high.ID = "third"
	c, err := pleach.Join(ctx, high, b.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	data := make([]byte, 2<<20)
	var long *pleach.MessageSizeError
	for _, g := range []*pleach.Group{b, c} {
		for name, err := range map[string]error{
			"broadcast": g.Broadcast(ctx, data),
			"send":      g.Send(ctx, pleach.Member{Rank: 0}, data),
		} {
			if !errors.As(err, &long) || long.ID != "low" || long.Max != 1<<20 || long.Size != 2<<20 || long.From != -1 {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if err := b.Broadcast(ctx, data[:1<<20]); err != nil {
		t.Fatal(err)
	}
	for m := range a.Messages(ctx) {
		if len(m.Data) != 1<<20 {
			t.Errorf("%d bytes", len(m.Data))
		}
		break
	}
	if err := a.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "limits of 4 MiB", func() bool { return b.MaxMessage() == 4<<20 && c.MaxMessage() == 4<<20 },
		func() any { return fmt.Sprint(b.MaxMessage(), c.MaxMessage()) })
	if err := b.Broadcast(ctx, data); err != nil {
		t.Error(err)
	}
	if _, err := pleach.Join(ctx, low, b.Self().Address); !errors.As(err, new(*pleach.SettingError)) {
		t.Errorf("a process that can receive less than the group sends: %v", err)
	}
}

// Case 64: a message that is longer than a member can receive ends its membership, and no receipt
// has that member. The members start together, so they compare their settings only afterwards.
func TestTooLongMessageEndsMembership(t *testing.T) {
	ctx := within(t, 20*time.Second)
	addresses := testutil.FreeAddresses(t, 2)
	var groups [2]*pleach.Group
	for rank := range groups {
		c := pleach.Config{Addresses: addresses, Rank: rank, Static: true}
		if rank == 1 {
			c.Limits.MaxMessage = 1 << 20
		}
		g, err := pleach.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Abort()
		groups[rank] = g
	}
	if err := groups[0].Broadcast(ctx, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	for m := range groups[1].Messages(ctx) {
		t.Errorf("received %d bytes", len(m.Data))
	}
	var long *pleach.MessageSizeError
	if err := groups[1].Err(); !errors.As(err, &long) || long.From != 0 || long.Size != 2<<20 || long.Max != 1<<20 {
		t.Errorf("the membership ended with %v", err)
	}
}

// Case 64: processes that begin a group together compare their settings, too: none begins with
// another one that differs, and each returns which setting does.
func TestFoundersCompareSettings(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var errs [2]error
	var running sync.WaitGroup
	for i, most := range []int{1 << 20, 2 << 20} {
		running.Go(func() {
			var g *pleach.Group
			g, errs[i] = pleach.Join(ctx, pleach.Config{
				Expect: 2, Listen: addresses[i],
				Limits: pleach.Limits{MaxMessage: most},
			}, addresses...)
			if g != nil {
				t.Error("a group has begun")
				_ = g.Abort()
			}
		})
	}
	running.Wait()
	for i, err := range errs {
		var differ *pleach.SettingError
		if !errors.As(err, &differ) || differ.Setting != "Limits.MaxMessage" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("process %d: %v", i, err)
		}
	}
}

// Case 64: members that were started together compare their settings with the lowest rank.
func TestStartComparesSettings(t *testing.T) {
	ctx := within(t, 20*time.Second)
	addresses := testutil.FreeAddresses(t, 2)
	var groups [2]*pleach.Group
	for rank := range groups {
		g, err := pleach.Start(ctx, pleach.Config{Addresses: addresses, Rank: rank, AllowMinority: rank == 1})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Abort()
		groups[rank] = g
	}
	for range groups[1].Views(ctx) { // until it ends
	}
	var differ *pleach.SettingError
	if err := groups[1].Err(); !errors.As(err, &differ) || differ.Setting != "AllowMinority" {
		t.Errorf("the membership ended with %v", err)
	}
}
