package prom_test

import (
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/ordered"
	"github.com/pleach-go/pleach/prom"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/shard"
)

// echo is a machine without a state.
type echo struct{}

func (echo) Apply(b []byte) []byte    { return b }
func (echo) Snapshot(io.Writer) error { return nil }
func (echo) Restore(io.Reader) error  { return nil }

func TestServices(t *testing.T) {
	table := lease.NewTable()
	replica, err := replicated.Join(t.Context(), replicated.Config{
		Group: pleach.Config{Group: "web"}, Machines: map[string]replicated.Machine{"echo": echo{}, "leases": table},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	leases, err := lease.New(lease.Config{Replica: replica, Machine: "leases", Table: table})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Propose(t.Context(), "echo", nil); err != nil {
		t.Fatal(err)
	}
	held, err := leases.Acquire(t.Context(), "l")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(t.Context())
	group, err := pleach.Create(t.Context(), pleach.Config{Group: "web"})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	shards, err := shard.New(group, shard.Config{Partitions: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer shards.Leave(t.Context())
	order, err := ordered.Join(t.Context(), ordered.Config{Group: pleach.Config{Group: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	defer order.Close()
	if err := order.Broadcast(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]prometheus.Collector{
		"# HELP pleach_replica_applied_total Commands that this process has applied.\n# TYPE pleach_replica_applied_total counter\npleach_replica_applied_total{group=\"web\"} 4\n":                           prom.NewReplica(replica),
		"# HELP pleach_leases_acquired_total Leases that this process has acquired, for itself or its clients.\n# TYPE pleach_leases_acquired_total counter\npleach_leases_acquired_total{group=\"web\"} 1\n": prom.NewLeases("web", leases),
		"# HELP pleach_shards_lost_total Partitions whose ownership has ended otherwise.\n# TYPE pleach_shards_lost_total counter\npleach_shards_lost_total{group=\"web\",shards=\"s\"} 0\n":                  prom.NewShards("web", "s", shards),
		"# HELP pleach_order_broadcast_total Messages of this process.\n# TYPE pleach_order_broadcast_total counter\npleach_order_broadcast_total{group=\"web\"} 1\n":                                         prom.NewOrder(order),
	} {
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("%v: %v", err, problems)
		}
		if err := testutil.CollectAndCompare(c, strings.NewReader(want), strings.Fields(want)[2]); err != nil {
			t.Error(err)
		}
	}
}
