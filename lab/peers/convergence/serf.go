package main

import (
	"context"
	"io"

	"github.com/hashicorp/serf/serf"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
)

// serfSurvivor is a member of a serf cluster. A member that has failed or left is missing.
func serfSurvivor(ctx context.Context, s *stabilization.Survivor) error {
	events := make(chan serf.Event, 512)
	c := serf.DefaultConfig()
	c.Init()
	c.MemberlistConfig = standard()
	if err := configure(c.MemberlistConfig, s); err != nil {
		return err
	}
	c.NodeName, c.EventCh, c.LogOutput = c.MemberlistConfig.Name, events, io.Discard
	w := newWatch(s)
	go func() {
		for e := range events {
			if m, ok := e.(serf.MemberEvent); ok {
				for _, member := range m.Members {
					w.set(member.Name, m.Type == serf.EventMemberJoin || m.Type == serf.EventMemberUpdate)
				}
			}
		}
	}()
	cluster, err := serf.Create(c)
	if err != nil {
		return err
	}
	join := func(others []string) (int, error) { return cluster.Join(others, true) }
	if err := joinAll(ctx, s, join); err != nil {
		return err
	}
	s.Ready()
	<-ctx.Done()
	return nil
}
