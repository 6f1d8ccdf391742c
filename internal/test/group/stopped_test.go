package group_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/topology"
)

// A child of the root in a static group is stopped while more is broadcast than a
// window holds. After a moment the root goes on without its credits, and feeds its
// subtree around it. When the child goes on, it gets everything.
func TestStoppedChildHoldsUpNobody(t *testing.T) {
	const (
		size    = 8
		bytes   = 64 << 10
		pace    = 8 * time.Millisecond // 8 MiB/s
		stopped = 5 * time.Second      // 40 MiB: a queue has 1, sockets about 10; then a second's patience
		watched = time.Second          // the last of it, when nothing has room
	)
	c := startCluster(t, onLoopback(t, size), func(rank int) memberConfig {
		config := memberConfig{KeepBytes: 64 << 20, Static: true}
		if rank == 0 {
			config.Messages, config.Bytes, config.Pace = 900, bytes, pace
		}
		return config
	})
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, 0)
	if err != nil {
		t.Fatal(err)
	}
	child := int(slices.Collect(topology.Children(tree, 0))[0])
	counts := func() []int {
		had := make([]int, size)
		for rank, p := range c.members {
			had[rank] = p.has(0)
		}
		return had
	}

	time.Sleep(calm)
	// A host that is busy with something else lets less through than the pace.
	sent := min(int(watched/pace), int(watched/calm)*slices.Max(counts()))
	c.signal(child, syscall.SIGSTOP)
	time.Sleep(stopped - watched)
	before := counts()
	time.Sleep(watched)
	after := counts()
	c.signal(child, syscall.SIGCONT)
	resumed := time.Now()
	t.Logf("child %d was stopped; messages while nothing had room: before %v, after %v", child, before, after)
	for rank := 1; rank < size; rank++ {
		// A wait of a second for each would leave one.
		if got := after[rank] - before[rank]; rank != child && got < sent/4 {
			t.Errorf("rank %d has got %d messages of about %d", rank, got, sent)
		}
	}
	testutil.Within(20*time.Second, func() bool { return c.members[child].has(0) >= slices.Max(after) })
	t.Logf("child %d had caught up after %v", child, time.Since(resumed))
	r := finish(c)
	r.Check(t)
	for rank, p := range c.members {
		t.Logf("rank %d: longest delivery %v", rank, p.late)
	}
}
