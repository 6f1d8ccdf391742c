package faults

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Case 25: members join and leave again and again. The others, which are in one process
// here, need as much memory after many views as after half of them.
func TestCase25MemoryDoesNotGrowWithViews(t *testing.T) {
	joins := testutil.Joins.Or(100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	groups := start(t, 16, nil)
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC() // what a finalizer of the first has freed
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	var before int64
	for i := range joins {
		if i == joins/2 {
			before = heap()
		}
		g, err := pleach.Join(ctx, pleach.Config{Group: "faults", Listen: "127.0.0.1:0"}, groups[0].Self().Address)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	grown, views := heap()-before, groups[0].View().Number
	figures(t, map[string]any{"case": 25, "views": views, "grown_kib": grown >> 10})
	if grown > 1<<20 || views < uint64(joins) {
		t.Errorf("%d KiB more after %d views", grown>>10, views)
	}
}
