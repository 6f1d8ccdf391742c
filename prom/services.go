package prom

// What services build on a group: orders, replicas, leases and shards, each by its Stats.

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/ordered"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/shard"
)

// NewOrder returns a collector for an order of messages.
func NewOrder(o *ordered.Order) prometheus.Collector {
	return newStats(o.Group().Status().Group, nil, o.Stats,
		orderStats(func(s *ordered.Stats) *ordered.Stats { return s })...)
}

// NewReplica returns a collector for state machines, and for the order of their commands.
func NewReplica(r *replicated.Replica) prometheus.Collector {
	return newStats(r.Group().Status().Group, nil, r.Stats, append([]stat[replicated.Stats]{
		count("replica_proposed_total", "Commands and reads that this process has proposed.",
			func(s *replicated.Stats) uint64 { return s.Proposed }),
		level("replica_pending", "Proposals of this process that wait for their results.",
			func(s *replicated.Stats) int { return s.Pending }),
		count("replica_applied_total", "Commands that this process has applied.",
			func(s *replicated.Stats) uint64 { return s.Applied }),
		count("replica_repeated_total", "Commands that came again and were not applied.",
			func(s *replicated.Stats) uint64 { return s.Repeated }),
	}, orderStats(func(s *replicated.Stats) *ordered.Stats { return &s.Order })...)...)
}

// orderStats are those of an order, which is part of other stats.
func orderStats[T any](of func(*T) *ordered.Stats) []stat[T] {
	return []stat[T]{
		count("order_broadcast_total", "Messages of this process.", func(s *T) uint64 { return of(s).Broadcast }),
		count("order_resent_total", "Messages of this process that were sent again, to another leader.",
			func(s *T) uint64 { return of(s).Resent }),
		count("order_delivered_total", "Messages that were delivered to the program.",
			func(s *T) uint64 { return of(s).Delivered }),
		count("order_begun_total", "How often the order began again, with an empty state, because no member knew it.",
			func(s *T) uint64 { return of(s).Begun }),
		level("order_pending_bytes", "Bytes of this process's messages that have no place in the order yet.",
			func(s *T) int { return of(s).PendingBytes }),
		level("order_number", "Place of the last message that has one.", func(s *T) int { return int(of(s).Number) }),
		level("order_leader_rank", "Rank of the leader; -1: not known.", func(s *T) int { return of(s).Leader }),
	}
}

// NewLeases returns a collector for the leases of a group. They have the label group, as the
// caller names it.
func NewLeases(group string, l *lease.Leases) prometheus.Collector {
	return newStats(group, nil, l.Stats,
		level("leases", "Leases of the group that are held, or whose holders are gone.",
			func(s *lease.Stats) int { return s.Leases }),
		count("leases_acquired_total", "Leases that this process has acquired, for itself or its clients.",
			func(s *lease.Stats) uint64 { return s.Acquired }),
		count("leases_renewed_total", "Renewals by this process.", func(s *lease.Stats) uint64 { return s.Renewed }),
		count("leases_refused_total", "Renewals and releases of leases that were lost.",
			func(s *lease.Stats) uint64 { return s.Refused }),
	)
}

// NewShards returns a collector for the partitions of a group. They have the labels group and
// shards, as the caller names them.
func NewShards(group, name string, s *shard.Shards) prometheus.Collector {
	return newStats(group, prometheus.Labels{"shards": name}, s.Stats,
		level("shards_owned", "Partitions that this process owns.", func(s *shard.Stats) int { return s.Owned }),
		level("shards_draining", "Partitions that are on their way to other members.",
			func(s *shard.Stats) int { return s.Draining }),
		count("shards_begun_total", "Partitions that this process has begun to own.",
			func(s *shard.Stats) uint64 { return s.Begun }),
		count("shards_released_total", "Partitions that this process has handed over.",
			func(s *shard.Stats) uint64 { return s.Released }),
		count("shards_lost_total", "Partitions whose ownership has ended otherwise.",
			func(s *shard.Stats) uint64 { return s.Lost }),
		count("shards_lapses_total", "How often this process has stopped serving for want of a majority.",
			func(s *shard.Stats) uint64 { return s.Lapses }),
		count("shards_not_owner_total", "Calls of Serve for partitions of others.",
			func(s *shard.Stats) uint64 { return s.NotOwner }),
	)
}

// stat is one metric of stats.
type stat[T any] struct {
	name, help string
	kind       prometheus.ValueType
	value      func(*T) float64
}

func count[T any](name, help string, value func(*T) uint64) stat[T] {
	return stat[T]{name, help, prometheus.CounterValue, func(s *T) float64 { return float64(value(s)) }}
}

func level[T any](name, help string, value func(*T) int) stat[T] {
	return stat[T]{name, help, prometheus.GaugeValue, func(s *T) float64 { return float64(value(s)) }}
}

// statCollector is a collector of stats.
type statCollector[T any] struct {
	stats func() T
	list  []stat[T]
	descs []*prometheus.Desc // of list
}

func newStats[T any](group string, labels prometheus.Labels, stats func() T, list ...stat[T]) *statCollector[T] {
	c := &statCollector[T]{stats: stats, list: list}
	all := prometheus.Labels{"group": group}
	for name, value := range labels {
		all[name] = value
	}
	for _, s := range list {
		c.descs = append(c.descs, prometheus.NewDesc("pleach_"+s.name, s.help, nil, all))
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *statCollector[T]) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *statCollector[T]) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	for i, m := range c.list {
		to <- prometheus.MustNewConstMetric(c.descs[i], m.kind, m.value(&s))
	}
}
