package scale

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/mem"
)

// bareMemory is the bare tree of package broadcast without sockets: what comes from the
// parent is sent to the children, and nothing else.
func bareMemory() broadcast.System {
	return broadcast.System{Name: "bare in memory", Start: startBare}
}

type bareTree struct {
	members []transport.Transport
	tree    topology.Tree
	frames  atomic.Uint64
	arrived func(rank int, payload []byte)
}

func startBare(_ context.Context, members int, arrived func(int, []byte)) (broadcast.Started, error) {
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, protocol.Rank(members), 0)
	if err != nil {
		return nil, err
	}
	b := &bareTree{tree: tree, arrived: arrived}
	network := mem.NewNetwork(members, mem.Config{})
	for rank := range protocol.Rank(members) {
		t := network.Member(rank)
		if err := t.Start(bareMember{b, rank}); err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.members = append(b.members, t)
	}
	return b, nil
}

// forward sends a payload to the children of a rank.
func (b *bareTree) forward(rank protocol.Rank, payload []byte) (err error) {
	for child := range topology.Children(b.tree, rank) {
		err = errors.Join(err, b.members[rank].Send(child, payload))
	}
	return err
}

// Broadcast implements [broadcast.Started].
func (b *bareTree) Broadcast(_ context.Context, payload []byte) error { return b.forward(0, payload) }

// Counts implements [broadcast.Started].
func (b *bareTree) Counts() (messages, bytes uint64) { return b.frames.Load(), 0 }

// Close implements [broadcast.Started].
func (b *bareTree) Close() (err error) {
	for _, t := range b.members {
		err = errors.Join(err, t.Close())
	}
	return err
}

// bareMember is a handler that forwards.
type bareMember struct {
	tree *bareTree
	rank protocol.Rank
}

// Receive implements [transport.Handler].
func (m bareMember) Receive(_ protocol.Rank, frame []byte) {
	m.tree.frames.Add(1)
	_ = m.tree.forward(m.rank, frame) // a round that is not complete says so
	m.tree.arrived(int(m.rank), frame)
}

// Up implements [transport.Handler].
func (bareMember) Up(protocol.Rank, uint64) {}

// Down implements [transport.Handler].
func (bareMember) Down(protocol.Rank, error) {}

// Writable implements [transport.Handler].
func (bareMember) Writable(protocol.Rank) {}
