package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// memberlistPeer is hashicorp/memberlist with its queue of broadcasts: a
// member that gets a message for the first time queues it, and gossip carries it on. That is
// how serf, Consul and Nomad use it.
func memberlistPeer() peerSystem {
	return peerSystem{
		System: broadcast.System{Name: "memberlist", Start: startMemberlist, Settling: gossipSettling, Files: 2},
		module: "github.com/hashicorp/memberlist",
	}
}

// What a careful user sets for speed: gossip 20 times as often as by default (200
// ms), to 4 others instead of 3, and no compression of small packets. Everything
// else is the default for a local network, but probes, which are as patient as in a
// wide one: a busy host must not look dead. On a busy machine with 2 cores, 5 ms were
// about a quarter faster among 32 members, and made no clear difference among 128.
// They would double the ticks of idle members, which share the processor with the
// system that is measured.
const (
	gossipInterval = 10 * time.Millisecond
	gossipNodes    = 4
	// gossipSettling is about how long a message is sent again.
	gossipSettling = 100 * time.Millisecond
)

// defaultGossip is what a user has who sets nothing, on a local network.
func defaultGossip(rank int) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = strconv.Itoa(rank)
	c.BindAddr, c.BindPort = "127.0.0.1", 0
	c.AdvertiseAddr = "127.0.0.1"
	c.LogOutput = io.Discard
	return c
}

func gossipConfig(rank int) *memberlist.Config {
	c := defaultGossip(rank)
	c.GossipInterval, c.GossipNodes = gossipInterval, gossipNodes
	c.EnableCompression = false
	patient := memberlist.DefaultWANConfig()
	c.ProbeInterval, c.ProbeTimeout, c.SuspicionMult = patient.ProbeInterval, patient.ProbeTimeout, patient.SuspicionMult
	return c
}

// gossiper is a member, and its own delegate.
type gossiper struct {
	rank     int
	list     *memberlist.Memberlist
	queue    memberlist.TransmitLimitedQueue
	arrived  func(int, []byte)
	seen     sync.Map // messages that have come; they differ by their number
	messages atomic.Uint64
}

func newGossiper(rank, members int, arrived func(int, []byte)) *gossiper {
	m := &gossiper{rank: rank, arrived: arrived}
	m.queue = memberlist.TransmitLimitedQueue{RetransmitMult: 4, NumNodes: func() int { return members }}
	return m
}

type gossipers []*gossiper

func startMemberlist(ctx context.Context, members int, arrived func(int, []byte)) (broadcast.Started, error) {
	var g gossipers
	for rank := range members {
		m := newGossiper(rank, members, arrived)
		c := gossipConfig(rank)
		c.Delegate = m
		var err error
		m.list, err = memberlist.Create(c)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g = append(g, m)
	}
	err := joinTwice(ctx, members, func(rank int) error {
		_, err := g[rank].list.Join([]string{g[0].list.LocalNode().Address()})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	err = await(ctx, "all to know all", func() bool {
		for _, m := range g {
			if m.list.NumMembers() < members {
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// joinTwice has all members join by rank 0, which then knows all, and once more to
// learn of those that came later. Gossip does the same, but a busy host loses it, and
// the next full exchange is more than a minute away.
func joinTwice(ctx context.Context, members int, join func(rank int) error) error {
	for range 2 {
		for rank := 1; rank < members; rank++ {
			if err := cmp.Or(ctx.Err(), join(rank)); err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
		}
	}
	return nil
}

// NotifyMsg takes a message. Memberlist uses its bytes again.
func (m *gossiper) NotifyMsg(payload []byte) {
	m.messages.Add(1)
	if m.isNew(payload) {
		m.queue.QueueBroadcast(gossip(slices.Clone(payload)))
		m.arrived(m.rank, payload)
	}
}

// isNew tells a message from the copies of it, as a set of all that came.
func (m *gossiper) isNew(payload []byte) bool {
	_, seen := m.seen.LoadOrStore(string(payload), true)
	return !seen
}

func (m *gossiper) GetBroadcasts(overhead, limit int) [][]byte {
	return m.queue.GetBroadcasts(overhead, limit)
}
func (m *gossiper) NodeMeta(int) []byte           { return nil }
func (m *gossiper) LocalState(bool) []byte        { return nil }
func (m *gossiper) MergeRemoteState([]byte, bool) {}

// gossip is a message that makes no other void.
type gossip []byte

func (b gossip) Message() []byte                       { return b }
func (b gossip) Invalidates(memberlist.Broadcast) bool { return false }
func (b gossip) Finished()                             {}
func (b gossip) UniqueBroadcast()                      {}

func (g gossipers) Broadcast(_ context.Context, payload []byte) error {
	g[0].isNew(payload) // and no longer, when it comes back
	g[0].queue.QueueBroadcast(gossip(payload))
	return nil
}

// Counts has every copy; bytes memberlist does not tell.
func (g gossipers) Counts() (messages, bytes uint64) {
	for _, m := range g {
		messages += m.messages.Load()
	}
	return messages, 0
}

func (g gossipers) Close() error {
	return closeAll(g, func(m *gossiper) error { return m.list.Shutdown() })
}
