//go:build unix

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Case 43: the process that has created a group is killed, and started again by the same
// command, with the others among its seeds. It is a member of their group.
func TestCase43CreatedAgain(t *testing.T) {
	address := testutil.FreeAddresses(t, 1)[0]
	c := pleach.Config{Group: "faults", ID: "first", Listen: address}
	first, err := pleach.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var seeds []string
	for i := range 2 {
		g, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: fmt.Sprint("m", i)}, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		seeds = append(seeds, g.Self().Address)
	}
	_ = first.Abort()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	again, err := pleach.Create(ctx, c, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Abort()
	if v := again.View(); v.Number == 1 || v.Size() != 3 {
		t.Errorf("it has created another group: %v", v)
	}
}

// Case 44: processes that are to begin together expect different numbers. Each of them says
// so, with the numbers.
func TestCase44ExpectDiffers(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	errs := make([]chan error, 3)
	for i, expect := range []int{3, 3, 4} {
		errs[i] = make(chan error, 1)
		go func() {
			g, err := pleach.Join(ctx, pleach.Config{
				Group: "faults", ID: fmt.Sprint("m", i), Listen: addresses[i],
				Expect: expect,
			}, addresses...)
			if err == nil {
				_ = g.Abort()
			}
			errs[i] <- err
		}()
	}
	for i, want := range []string{
		`"m2" expects 4, and this process 3`, `"m2" expects 4, and this process 3`,
		`"m0" expects 3, and this process 4`,
	} {
		if err := <-errs[i]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("process %d: %v, want %s", i, err, want)
		}
	}
}

// Case 46: a member is stopped right after the group has begun, before its neighbor has
// heard it. It is suspected as any other one that was not heard yet: after twice
// SuspicionTimeout.
func TestCase46NeverHeard(t *testing.T) {
	const timeout = 1500 * time.Millisecond
	view, err := membership.FirstView([]membership.Member{
		{Identity: "a", Address: "a:1", Incarnation: member.FirstIncarnation, Nonce: 1},
		{Identity: "b", Address: "b:1", Incarnation: member.FirstIncarnation, Nonce: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	var suspected protocol.Time
	now := protocol.Time(1)
	m, err := member.New(member.Config{
		Self: *view.Members.At(0), View: view,
		Heartbeat: heartbeat.Config{Interval: protocol.Time(timeout / 5), Timeout: protocol.Time(timeout)},
		OnSilence: func(protocol.Rank, bool) { suspected = now },
	})
	if err != nil {
		t.Fatal(err)
	}
	for m.Start(now); suspected == 0 && now < protocol.Time(10*time.Second); now += protocol.Time(10 * time.Millisecond) {
		for ok := true; ok; {
			_, _, _, ok = m.Next(now)
		}
		m.Settle(now)
	}
	if took := time.Duration(suspected); took == 0 || took > 2*timeout+timeout/2 {
		t.Errorf("suspected after %v", took)
	}
	figures(t, map[string]any{"case": 46, "suspected_ms": time.Duration(suspected).Milliseconds()})
}
