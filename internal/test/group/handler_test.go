package group_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A handler gets what Messages would yield, in the same order, one at a time;
// and it may broadcast.
func TestHandler(t *testing.T) {
	const size, messages = 5, 200
	addresses := testutil.FreeAddresses(t, size)
	var done sync.WaitGroup
	groups := make([]*pleach.Group, size)
	var ready sync.WaitGroup
	ready.Add(1)
	for r := range groups {
		next := make([]int, size)
		missing := (size - 1) * messages
		if r > 0 {
			missing += messages // the answers of rank 0's handler, see below
		}
		done.Add(1)
		var busy sync.Mutex
		groups[r] = start(t, pleach.Config{Addresses: addresses, Rank: r, OnMessage: func(m pleach.Message, _ error) {
			ready.Wait()
			if !busy.TryLock() {
				t.Error("two messages at a time")
			}
			defer busy.Unlock()
			number := int(binary.BigEndian.Uint32(m.Data[4:]))
			if number != next[m.From] {
				t.Errorf("rank %d: message %d of root %d, want %d", r, number, m.From, next[m.From])
			}
			next[m.From]++
			if r == 0 && m.From == 1 {
				if err := groups[0].Broadcast(t.Context(), message(0, messages+number, 100)); err != nil {
					t.Error(err)
				}
			}
			missing--
			if missing == 0 {
				done.Done()
			}
		}})
	}
	ready.Done()
	// Rank 0 is done before the others begin, so that its answers follow.
	send := func(r int) {
		for i := range messages {
			if err := groups[r].Broadcast(t.Context(), message(r, i, 100)); err != nil {
				t.Error(err)
			}
		}
	}
	send(0)
	for r := 1; r < size; r++ {
		done.Go(func() { send(r) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	finished := make(chan struct{})
	go func() { done.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		var stats string
		for _, g := range groups {
			stats += fmt.Sprintf("%+v\n", g.Stats())
		}
		t.Fatalf("not everything arrived:\n%s", stats)
	}
}
