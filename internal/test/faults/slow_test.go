package faults

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Case 1: a program receives nothing for a while, as one that is busy does, while
// another sends more than an inbox holds. No member loses anything, and the receipt that
// names them is a proof.
func TestCase1BusyProgram(t *testing.T) {
	const members, messages, size = 4, 60, 1 << 20
	groups := start(t, members, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var receiving sync.WaitGroup
	got, lost := make([]int, members), make([]uint64, members)
	for r, g := range groups[1:] {
		receiving.Go(func() {
			if r == 0 {
				time.Sleep(seconds())
			}
			for _, err := range g.Messages(ctx) {
				if err == nil {
					got[r+1]++
				}
				if e, ok := errors.AsType[*pleach.LostError](err); ok {
					lost[r+1] += e.Count
				}
				if got[r+1] == messages {
					return
				}
			}
		})
	}
	began, longest := time.Now(), time.Duration(0)
	for range messages {
		sent := time.Now()
		if err := groups[0].Broadcast(ctx, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(sent))
	}
	receipt, err := groups[0].WaitStable(ctx)
	took := time.Since(began)
	receiving.Wait()
	figures(t, map[string]any{
		"case": 1, "lost": slices.Max(lost), "received": got[1:], "blocked_ms_max": longest.Milliseconds(),
		"took_ms": took.Milliseconds(), "receipt": len(receipt.Members),
	})
	if err != nil || len(receipt.Members) != members {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
	for r := 1; r < members; r++ {
		if got[r] != messages || lost[r] > 0 {
			t.Errorf("rank %d received %d of %d messages and lost %d", r, got[r], messages, lost[r])
		}
	}
}

// Case 20: an inner member of a static group is dead, and no member is told. A root
// sends at full rate, and the live members receive everything, about as fast as with
// all alive.
func TestCase20UnknownDeadInnerMember(t *testing.T) {
	const members, size = 8, 4 << 10
	static := func(c *pleach.Config) { c.Static = true }
	alive := broadcastAll(t, start(t, members, static), 1, size, seconds())
	groups := start(t, members, static)
	if err := groups[1].Abort(); err != nil { // rank 1 has children in the tree of rank 0
		t.Fatal(err)
	}
	dead := broadcastAll(t, slices.Delete(groups, 1, 2), 1, size, seconds())
	ratio := float64(dead.sent) / dead.took.Seconds() / (float64(alive.sent) / alive.took.Seconds())
	figures(t, map[string]any{"case": 20, "lost": dead.lost, "pause_ms": dead.pause.Milliseconds(), "of_alive": ratio})
	if dead.lost+alive.lost > 0 {
		t.Errorf("%d messages lost with a dead member, %d without", dead.lost, alive.lost)
	}
}
