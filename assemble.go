package pleach

import (
	"context"
	"errors"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// newGroup assembles a member: the protocol stack, the node that drives it and,
// unless the group is static, detectors. The unicast channel may be nil.
func newGroup(c Config, s *initialState, u unicast) (_ *Group, err error) {
	g := &Group{
		config: c, self: s.self, listening: s.listening, view: &s.current,
		sendLock: make(chan struct{}, 1), arrived: make(chan struct{}, 1), written: make(chan struct{}, 1),
		joins: pendingJoins{waiting: make(map[uint64]func([]byte))}, reachSlots: make(chan struct{}, maxReach),
		suspects: make(map[protocol.Rank]Suspect), held: make(map[protocol.Rank]detect.Report),
		log: c.Logger.With("group", c.Group, "rank", s.self.Rank),
	}
	if t, ok := s.transport.(interface{ LocalError() (time.Time, error) }); ok {
		g.localError = t.LocalError
	}
	g.life, g.end = context.WithCancelCause(context.Background())
	if c.Static && g.self.Incarnation == firstIncarnation {
		g.self.Incarnation = uint64(time.Now().UnixNano())
	}
	g.addresses, _ = s.transport.(transport.AddressBook)
	g.stack = &stack{onInstall: g.installView, unicast: u}
	if g.stack.stream, err = stream.New(g.streamConfig(s)); err != nil {
		return nil, err
	}
	g.member = g.stack.stream
	g.view.Store(viewOf(&s.view))
	n := node.Config{Transport: s.transport, Protocol: g.stack, AfterStep: g.afterStep, Logger: g.log}
	if c.Handler != nil {
		n.AfterUnlock = g.dispatch
	}
	if c.Static {
		g.node = node.New(n)
		return g, g.node.Start()
	}
	return g, g.startViews(s, n)
}

// streamConfig is how this member's streams begin.
func (g *Group) streamConfig(s *initialState) stream.Config {
	l := g.config.Limits
	c := stream.Config{
		Rank: g.self.Rank, Size: s.view.Slots, Incarnation: g.self.Incarnation, Shape: g.config.Shape,
		SegmentSize: l.SegmentSize, InlineSize: l.InlineSize, MaxMessage: l.MaxMessage,
		KeepBytes: l.KeepBytes, InboxBytes: l.InboxBytes, OutboxBytes: l.OutboxBytes, Drop: l.Overflow == Drop,
	}
	if !g.config.Static {
		c.View, c.Members, c.Start = s.view.Number, memberIDs(&s.view), streamPositions(s.start)
	}
	return c
}

// startViews starts a member that agrees on views with others.
func (g *Group) startViews(s *initialState, c node.Config) (err error) {
	g.stack.views, err = membership.New(membership.Config{Self: g.self, View: s.view, Log: g.stack, NoQuorum: g.config.AllowMinority})
	if err != nil {
		return err
	}
	g.startHeartbeats()
	g.makeDetectors()
	c.Watcher, c.HandleRequest = g.connections, g.handleRequest
	g.node = node.New(c)
	if err = g.startWatching(&s.view); err == nil {
		err = g.node.Start()
	}
	if err != nil {
		return errors.Join(err, g.detector.Close())
	}
	return g.node.Do(func(now protocol.Time) {
		g.stack.now = now
		g.connectNeighbors(&s.view)
	})
}
