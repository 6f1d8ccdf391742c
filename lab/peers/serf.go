package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/serf/serf"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// serfPeer is a user event of hashicorp/serf, over memberlist set up as for
// [memberlistPeer].
func serfPeer() peerSystem {
	return peerSystem{
		System: broadcast.System{Name: "serf", Start: startSerf, Settling: gossipSettling, Files: 2},
		module: "github.com/hashicorp/serf",
	}
}

type serfs []*serf.Serf

func startSerf(ctx context.Context, members int, arrived func(int, []byte)) (broadcast.Started, error) {
	var g serfs
	for rank := range members {
		s, err := newSerf(rank, arrived)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rank %d: %w", rank, err), g.Close())
		}
		g = append(g, s)
	}
	err := joinTwice(ctx, members, func(rank int) error {
		_, err := g[rank].Join([]string{g[0].Memberlist().LocalNode().Address()}, true)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	err = await(ctx, "all to know all", func() bool {
		for _, s := range g {
			if s.NumNodes() < members {
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

func newSerf(rank int, arrived func(int, []byte)) (*serf.Serf, error) {
	events := make(chan serf.Event, 512)
	c := serf.DefaultConfig()
	c.Init()
	c.MemberlistConfig = gossipConfig(rank)
	c.NodeName = c.MemberlistConfig.Name
	c.EventCh = events
	c.LogOutput = io.Discard
	s, err := serf.Create(c)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case e := <-events:
				if u, ok := e.(serf.UserEvent); ok {
					arrived(rank, u.Payload)
				}
			case <-s.ShutdownCh():
				return
			}
		}
	}()
	return s, nil
}

func (g serfs) Broadcast(_ context.Context, payload []byte) error {
	return g[0].UserEvent("bench", payload, false)
}

// Counts: serf hands over each event once, and does not tell of copies.
func (g serfs) Counts() (messages, bytes uint64) { return 0, 0 }

func (g serfs) Close() error {
	return closeAll(g, (*serf.Serf).Shutdown)
}
