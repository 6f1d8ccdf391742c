package group_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// What a member costs that has nothing to do: each has broadcast once, one after
// the other, so that every connection that any root's tree and the ring need is
// there.
func TestFootprintOfIdleMembers(t *testing.T) {
	size := 64
	if testutil.RaceEnabled {
		size = 16
	}
	goroutines, bytes := runtime.NumGoroutine(), liveBytes()
	var transports []*tcp.Transport
	groups := joinTCPThrough(t, size, func(_ protocol.Rank, inner transport.Transport) transport.Transport {
		transports = append(transports, inner.(*tcp.Transport))
		return inner
	})
	for _, root := range groups {
		oneBroadcast(t, root, groups)
	}
	time.Sleep(time.Second) // until all corrections are over

	goroutines, bytes = runtime.NumGoroutine()-goroutines, liveBytes()-bytes
	connections := 0
	for _, tr := range transports {
		connections += int(tr.Stats().Connections)
	}
	each := func(n int) float64 { return float64(n) / float64(size) }
	t.Logf("%d members: each %.1f connections, %.1f goroutines, %.1f KiB of heap and stacks",
		size, each(connections), each(goroutines), each(bytes)/1024)
	if most := 4*size + 2*connections; goroutines > most {
		t.Errorf("%d goroutines, want at most %d", goroutines, most)
	}
	if most := (size + connections) * (32 << 10); bytes > most && !testutil.RaceEnabled {
		t.Errorf("%d bytes, want at most %d", bytes, most)
	}
}

// liveBytes is what this process holds, in heap and stacks.
func liveBytes() int {
	runtime.GC()
	runtime.GC() // what pools held is free only now
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc + s.StackInuse)
}

// oneBroadcast broadcasts once, and waits until all have it.
func oneBroadcast(t *testing.T, root *pleach.Group, groups []*pleach.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := root.Broadcast(ctx, message(root.Rank(), 0, 100)); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if err := collect(ctx, g, map[int]int{root.Rank(): 1}); err != nil {
			t.Fatal(err)
		}
	}
}
