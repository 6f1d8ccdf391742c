package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pleach-go/pleach/lab/bench/silent"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Members of peers, one in each process. Their settings are those of the other benchmark.

// freePort closes the socket that a member inherits, for a system that opens its own, and
// returns its port.
func freePort(w *silent.Worker) (int, error) {
	listener, err := w.Place.Listener()
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// oneNATS is a client. The root's process also has the server.
type oneNATS struct{ natsGroup }

func silentNATS(ctx context.Context, w *silent.Worker) (silent.Member, error) {
	port, err := freePort(w)
	if err != nil {
		return nil, err
	}
	m := &oneNATS{}
	if w.Place.Rank == 0 {
		m.server, err = newNATS(port)
		if err != nil {
			return nil, err
		}
	}
	url := "nats://" + w.Place.Addresses[0]
	err = retry(ctx, func() error { return m.connect(url, w.Place.Rank != 0, w.Take) })
	return m, err
}

func (m *oneNATS) Received() uint64 { return m.clients[0].Stats().InMsgs }

func (m *oneNATS) Close() error {
	m.clients[0].Close()
	if m.server != nil {
		m.server.Shutdown()
	}
	return nil
}

// newNATS starts a server.
func newNATS(port int) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(timeout) {
		s.Shutdown()
		return nil, errors.New("the server takes no connections")
	}
	return s, nil
}

// connect adds a client, and subscribes it unless it is the root's, which has the message.
func (g *natsGroup) connect(url string, subscribe bool, arrived func([]byte)) error {
	client, err := nats.Connect(url, nats.Timeout(timeout))
	if err != nil {
		return err
	}
	g.clients = append(g.clients, client)
	if !subscribe {
		return nil
	}
	if _, err = client.Subscribe(natsSubject, func(m *nats.Msg) { arrived(m.Data) }); err != nil {
		return err
	}
	return client.FlushTimeout(timeout) // the server knows of it
}

// oneGRPC is a member of the tree of streams.
type oneGRPC struct{ *grpcMember }

func silentGRPC(ctx context.Context, w *silent.Worker) (silent.Member, error) {
	listener, err := w.Place.Listener()
	if err != nil {
		return nil, err
	}
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, w.Place.Size, 0)
	if err != nil {
		return nil, err
	}
	m := &grpcMember{rank: int(w.Place.Rank), arrived: func(_ int, payload []byte) { w.Take(payload) }}
	m.serveOn(listener)
	return oneGRPC{m}, m.openAll(ctx, tree, func(child protocol.Rank) string { return w.Place.Addresses[child] })
}

func (m oneGRPC) Broadcast(_ context.Context, payload []byte) error {
	return m.send(slices.Clone(payload))
}
func (m oneGRPC) Received() uint64 { return m.messages.Load() }
func (m oneGRPC) Close() error     { return grpcGroup{m.grpcMember}.Close() }

// oneGossiper is a member of memberlist.
type oneGossiper struct{ *gossiper }

func silentMemberlist(config func(rank int) *memberlist.Config) func(context.Context,
	*silent.Worker) (silent.Member, error) {
	return func(ctx context.Context, w *silent.Worker) (silent.Member, error) {
		port, err := freePort(w)
		if err != nil {
			return nil, err
		}
		m := newGossiper(int(w.Place.Rank), len(w.Place.Addresses), func(_ int, payload []byte) { w.Take(payload) })
		c := config(m.rank)
		c.BindPort, c.AdvertisePort, c.Delegate = port, port, m
		m.list, err = memberlist.Create(c)
		if err != nil {
			return nil, err
		}
		return oneGossiper{m}, retry(ctx, func() error { return m.meet(w.Place.Addresses) })
	}
}

// meet joins the root's list until it knows all members.
func (m *gossiper) meet(addresses []string) error {
	if _, err := m.list.Join(addresses[:1]); err != nil {
		return err
	}
	if n := m.list.NumMembers(); n < len(addresses) {
		return fmt.Errorf("knows %d members", n)
	}
	return nil
}

func (m oneGossiper) Broadcast(ctx context.Context, payload []byte) error {
	return gossipers{m.gossiper}.Broadcast(ctx, slices.Clone(payload))
}
func (m oneGossiper) Received() uint64 { return m.messages.Load() }
func (m oneGossiper) Close() error     { return m.list.Shutdown() }

// oneGossipsub is a host of libp2p. Its identity follows from its rank, so that others can
// dial it.
type oneGossipsub struct{ *gossipsubGroup }

func silentGossipsub(ctx context.Context, w *silent.Worker) (silent.Member, error) {
	port, err := freePort(w)
	if err != nil {
		return nil, err
	}
	g := newGossipsubGroup(ctx)
	key, _, err := gossipsubIdentity(int(w.Place.Rank))
	if err != nil {
		return nil, err
	}
	err = g.join(0, "/ip4/127.0.0.1/tcp/"+strconv.Itoa(port), func(_ int, payload []byte) {
		if w.Place.Rank != 0 {
			w.Take(payload)
		}
	}, libp2p.Identity(key))
	if err != nil {
		return nil, err
	}
	for _, other := range gossipsubDialed(int(w.Place.Rank), len(w.Place.Addresses)) {
		_, id, err := gossipsubIdentity(other)
		if err != nil {
			return nil, err
		}
		_, otherPort, _ := net.SplitHostPort(w.Place.Addresses[other])
		address, err := multiaddr.NewMultiaddr("/ip4/127.0.0.1/tcp/" + otherPort)
		if err != nil {
			return nil, err
		}
		err = retry(ctx, func() error {
			return g.hosts[0].Connect(ctx, peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{address}})
		})
		if err != nil {
			return nil, err
		}
	}
	return oneGossipsub{g}, g.settle(ctx)
}

// gossipsubIdentity returns the key of a rank, and its name.
func gossipsubIdentity(rank int) (crypto.PrivKey, peer.ID, error) {
	seed := sha256.Sum256([]byte(strconv.Itoa(rank)))
	key, _, err := crypto.GenerateEd25519Key(io.Reader(rand.NewChaCha8(seed)))
	if err != nil {
		return nil, "", err
	}
	id, err := peer.IDFromPrivateKey(key)
	return key, id, err
}

func (m oneGossipsub) Broadcast(ctx context.Context, payload []byte) error {
	return m.gossipsubGroup.Broadcast(ctx, slices.Clone(payload))
}
func (m oneGossipsub) Received() uint64 { return m.messages.Load() }
