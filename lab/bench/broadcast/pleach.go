package broadcast

import (
	"context"
	"sync/atomic"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
)

// pleachMember is a member of a [pleach.Group] over TCP. All settings are defaults,
// but membership is static, so that the dead stay unknown. Messages go to a
// handler, as in the other systems, and are released: those use their memory again, too.
type pleachMember struct {
	group     *pleach.Group
	transport *tcp.Transport
}

func startPleach(s memberConfig, r *receiver) (member, error) {
	// The transport is made here, not by Start, for its counts.
	transport, err := tcp.New(tcp.Config{
		Group: s.group, Rank: protocol.Rank(s.rank), Addresses: s.addresses,
		Listener: s.listener,
	})
	if err != nil {
		return nil, err
	}
	var started atomic.Pointer[pleach.Group]
	group, err := pleach.Start(context.Background(), pleach.Config{
		Network: pleach.Network{Transport: transport, Size: len(s.addresses)},
		Rank:    s.rank,
		OnMessage: func(m pleach.Message, _ error) {
			r.take(m.Data)
			if g := started.Load(); g != nil {
				g.Release(m)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	started.Store(group)
	return &pleachMember{group, transport}, nil
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

func (m *pleachMember) close() error { return m.group.Close() }
