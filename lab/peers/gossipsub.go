package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	golog "github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// gossipsubPeer is libp2p's gossipsub, as lean as it can be set: TCP only, without
// encryption, signatures, relays and metrics. Meshes have the default degree, on
// connections as discovery would make them.
func gossipsubPeer() peerSystem {
	return peerSystem{
		System: broadcast.System{
			Name: "gossipsub", Start: startGossipsub, Settling: 10 * time.Millisecond,
			Files: 2 + 2*gossipsubDials,
		},
		module: "github.com/libp2p/go-libp2p-pubsub",
	}
}

const (
	// gossipsubDials is how many others a member connects to; as many connect to
	// it. Both together are about the most that a mesh takes, 12.
	gossipsubDials = 5
	// gossipsubBeats is how long members are left to make their meshes: they do
	// so by the second.
	gossipsubBeats = 3 * time.Second
)

type gossipsubGroup struct {
	ctx      context.Context // of all that members do
	cancel   context.CancelFunc
	hosts    []host.Host
	topics   []*pubsub.Topic
	messages atomic.Uint64
}

func startGossipsub(ctx context.Context, members int, arrived func(int, []byte)) (_ broadcast.Started, err error) {
	g := newGossipsubGroup(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	for rank := range members {
		if err := g.join(rank, "/ip4/127.0.0.1/tcp/0", arrived); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	if err := g.connect(ctx); err != nil {
		return nil, err
	}
	return g, g.settle(ctx)
}

func newGossipsubGroup(ctx context.Context) *gossipsubGroup {
	golog.SetupLogging(golog.Config{}) // writes nowhere; libp2p has no other way
	g := &gossipsubGroup{}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// settle waits until neighbors know of each other's subscriptions, and have made meshes.
func (g *gossipsubGroup) settle(ctx context.Context) error {
	err := await(ctx, "subscriptions", func() bool {
		for rank, t := range g.topics {
			if len(t.ListPeers()) < len(g.hosts[rank].Network().Peers()) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	time.Sleep(gossipsubBeats)
	return ctx.Err()
}

// join makes one member.
func (g *gossipsubGroup) join(rank int, address string, arrived func(int, []byte), more ...libp2p.Option) error {
	h, err := libp2p.New(append(more,
		libp2p.ListenAddrStrings(address), libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.NoSecurity, libp2p.DisableRelay(), libp2p.Ping(false), libp2p.DisableMetrics(),
		libp2p.ResourceManager(&network.NullResourceManager{}))...)
	if err != nil {
		return err
	}
	g.hosts = append(g.hosts, h)
	silent := slog.New(slog.DiscardHandler)
	ps, err := pubsub.NewGossipSub(g.ctx, h,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string { return string(m.GetData()) }), // they differ by the number
		pubsub.WithAppSpecificRpcInspector(g.count),
		pubsub.WithLogger(silent), pubsub.WithRPCLogger(silent))
	if err != nil {
		return err
	}
	topic, err := ps.Join("bench")
	if err != nil {
		return err
	}
	g.topics = append(g.topics, topic)
	messages, err := topic.Subscribe()
	if err != nil {
		return err
	}
	go func() {
		for {
			m, err := messages.Next(g.ctx)
			if err != nil {
				return // the end of ctx
			}
			arrived(rank, m.Data)
		}
	}()
	return nil
}

// count takes note of all copies that come in.
func (g *gossipsubGroup) count(_ peer.ID, rpc *pubsub.RPC) error {
	g.messages.Add(uint64(len(rpc.GetPublish())))
	return nil
}

// connect lets each member dial others.
func (g *gossipsubGroup) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for rank, h := range g.hosts {
		for _, r := range gossipsubDialed(rank, len(g.hosts)) {
			other := g.hosts[r]
			if err := h.Connect(ctx, peer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
		}
	}
	return nil
}

// gossipsubDialed returns the ranks that a member dials: the next one, so that all hang
// together, and others at random, always the same.
func gossipsubDialed(rank, members int) (ranks []int) {
	rng := rand.New(rand.NewPCG(1, uint64(rank)))
	for next := 1; len(ranks) < gossipsubDials; next = 1 + rng.IntN(members-1) {
		ranks = append(ranks, (rank+next)%members)
	}
	return ranks
}

func (g *gossipsubGroup) Broadcast(ctx context.Context, payload []byte) error {
	return g.topics[0].Publish(ctx, payload)
}

// Counts has every copy. Bytes include all that libp2p does besides, so they are
// left out.
func (g *gossipsubGroup) Counts() (messages, bytes uint64) { return g.messages.Load(), 0 }

func (g *gossipsubGroup) Close() error {
	g.cancel()
	return closeAll(g.hosts, host.Host.Close)
}
