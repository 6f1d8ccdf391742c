package bench

import (
	"context"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport/tcp"
	"github.com/pleach-go/pleach/wire"
)

// pleachMember is a member of a [pleach.Group] over TCP, with all defaults.
type pleachMember struct {
	group     *pleach.Group
	transport *tcp.Transport
	taking    sync.WaitGroup
}

func startPleach(s seat, r *receiver) (member, error) {
	rank, size := protocol.Rank(s.rank), protocol.Rank(len(s.addresses))
	// The transport is made here, not by Join, for its counts.
	transport, err := tcp.New(tcp.Config{Group: s.group, Rank: rank, Addresses: s.addresses, Listener: s.listener})
	if err != nil {
		return nil, err
	}
	group, err := pleach.Join(context.Background(), pleach.Config{
		Transport: transport,
		Stream:    stream.Config{Rank: rank, Size: size},
	})
	if err != nil {
		return nil, err
	}
	m := &pleachMember{group: group, transport: transport}
	m.taking.Go(func() {
		for message := range group.Messages(context.Background()) {
			r.take(message.Data)
		}
	})
	return m, nil
}

func (m *pleachMember) broadcast(ctx context.Context, payload []byte, first uint64, times int) error {
	for i := range times {
		stamp(payload, first+uint64(i))
		if err := m.group.Broadcast(ctx, payload); err != nil {
			return err
		}
	}
	return nil
}

func (m *pleachMember) counts() counts {
	s := m.transport.Stats()
	return counts{frames: s.FramesReceived, bytes: s.BytesReceived + wire.HeaderSize*s.FramesReceived}
}

func (m *pleachMember) close() error {
	err := m.group.Close()
	m.taking.Wait()
	return err
}
