package silent

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// Builtin are the systems that need no other module: Pleach, and the bare tree.
func Builtin() []System {
	return []System{{Name: "pleach", Start: startPleach}, {Name: "bare", Start: startBare}}
}

// pleachMember is a member of a group with views and all defaults, as its users run it.
type pleachMember struct {
	group *pleach.Group
	views sync.WaitGroup
}

func startPleach(ctx context.Context, w *Worker) (Member, error) {
	var started atomic.Pointer[pleach.Group]
	group, err := pleach.Start(ctx, pleach.Config{OnMessage: func(m pleach.Message, _ error) {
		w.Take(m.Data)
		if g := started.Load(); g != nil {
			g.Release(m)
		}
	}})
	if err != nil {
		return nil, err
	}
	started.Store(group)
	m := &pleachMember{group: group}
	m.views.Go(func() {
		for v := range group.Views(ctx) {
			w.Sees(len(v.Members()))
		}
	})
	return m, nil
}

func (m *pleachMember) Broadcast(ctx context.Context, payload []byte) error {
	return m.group.Broadcast(ctx, payload)
}

func (m *pleachMember) Received() uint64 { return m.group.Stats().FramesReceived }

func (m *pleachMember) Close() error {
	err := m.group.Close()
	m.views.Wait()
	return err
}

// startBare starts a member of the tree without correction. Members below a silent one
// get nothing.
func startBare(_ context.Context, w *Worker) (Member, error) {
	listener, err := w.Place.Listener()
	if err != nil {
		return nil, err
	}
	return broadcast.StartBare(int(w.Place.Rank), w.Place.Addresses, listener, w.Take)
}
