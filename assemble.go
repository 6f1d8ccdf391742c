package pleach

import (
	"context"
	"errors"
	"time"

	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// newSession assembles a member: the machine that has its protocols, the node that drives it
// and, unless the group is static, detectors. The unicast channel may be nil.
func newSession(group *Group, c Config, s *initialState, u member.Unicast, gap *Gap) (*session, error) {
	g := &session{
		group: group, delivery: &group.delivery,
		config: c, self: s.self, data: s.data, topics: make(map[uint64]*Topic),
		log:       c.Logger.With("group", c.Group, "rank", s.self.Rank),
		network:   network{listening: s.listening},
		views:     views{view: &s.current},
		admitting: admitting{began: s.began, reachSlots: door.NewSlots(maxReach)},
		troubles:  troubles{suspects: make(map[protocol.Rank]Suspect)},
		sending: sending{
			sendLock: make(chan struct{}, 1), metaLock: make(chan struct{}, 1),
			tracing: tracing{lock: make(chan struct{}, 1)}, written: make(chan struct{}, 1),
		},
	}
	if t, ok := s.transport.(interface{ LocalError() (time.Time, error) }); ok {
		g.localError = t.LocalError
	}
	if t, ok := s.transport.(interface{ Queued(protocol.Rank) int }); ok {
		g.queued = t.Queued
	}
	g.joined = time.Now()
	g.joined = time.Now()
	g.life, g.end = context.WithCancelCause(context.Background())
	if c.Static && g.self.Incarnation == member.FirstIncarnation {
		g.self.Incarnation = uint64(time.Now().UnixNano())
	}
	g.addresses, _ = s.transport.(transport.AddressBook)
	g.roster, _ = s.transport.(transport.Roster)
	if err := g.makeMachine(g.memberConfig(s, u)); err != nil {
		return nil, err
	}
	g.stream = g.machine.Stream()
	g.view.Store(&s.view)
	g.noteView(&s.view, membership.Members{})
	g.makeDirect(s)
	g.makeReplica(&s.view)
	g.announce(gap)
	n := node.Config{Transport: s.transport, Protocol: g.inputs, AfterStep: g.afterStep, Logger: g.log}
	_, n.Precise = s.transport.(*tcp.Transport) // others may be in the virtual time of a test
	if c.Handler != nil {
		n.AfterUnlock = g.dispatch
	}
	if c.Static {
		g.node = node.New(n)
		return g, g.node.Start()
	}
	return g, g.startViews(s, n)
}

// memberConfig is how this member begins, and what it tells the group.
func (g *session) memberConfig(s *initialState, u member.Unicast) member.Config {
	l := g.config.Limits
	c := member.Config{
		Self: g.self, View: s.view, Start: s.start, Static: g.config.Static, Unicast: u,
		Stream: stream.Config{
			Shape: g.config.Shape, SegmentSize: l.SegmentSize, InlineSize: l.InlineSize, MaxMessage: l.MaxMessage,
			KeepBytes: l.KeepBytes, InboxBytes: l.InboxBytes, OutboxBytes: l.OutboxBytes, Drop: l.Overflow == Drop, Replicate: g.config.State != nil, AllTopics: g.config.Handler != nil,
		},
		Membership:  membership.Config{NoQuorum: g.config.AllowMinority, Decisions: s.decisions, ProbeTimeout: protocol.Time(max(g.config.SuspicionTimeout, 0))},
		Heartbeat:   heartbeatTimes(&g.config),
		SlowTimeout: protocol.Time(l.SlowTimeout), MaxDirect: l.maxDirect() + directHead,
		OnView: g.installView, OnSilence: g.handleSilence, OnReport: g.noteReport, OnState: g.updateState,
		OnSlow: func(after protocol.Time) {
			g.log.Warn("leaving: the program receives nothing", "for", time.Duration(after))
		},
	}
	if g.data != nil {
		c.Save = g.saveVote
	}
	return c
}

// startViews starts a member that agrees on views with others.
func (g *session) startViews(s *initialState, c node.Config) error {
	g.makeDetectors(s)
	g.noteAdmissions(&s.view, membership.Members{})
	g.setPeers(&s.view, membership.Members{})
	c.Watcher, c.HandleRequest = &watcher{g.connections, g.removed, g.askToCatchUp}, g.handleRequest
	g.node = node.New(c)
	err := g.data.enter(s)
	if err == nil {
		err = g.startWatching(&s.view)
	}
	if err == nil {
		err = g.node.Start()
	}
	if err != nil {
		return errors.Join(err, g.detector.Close())
	}
	g.seeds.Store(&s.seeds)
	g.asking.Go(g.keepSeeds)
	if g.config.TLS != nil {
		g.asking.Go(g.watchExpiry)
	}
	return g.node.Do(func(now protocol.Time) {
		g.inputs.Start(now)
		if g.config.Meta != g.self.Meta { // it has begun together with others, which do not know it
			_ = g.inputs.SetMeta(now, g.config.Meta) // its length was checked
		}
	})
}
