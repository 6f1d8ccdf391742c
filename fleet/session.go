package fleet

import (
	"bytes"
	"context"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// session is one membership in the backbone.
type session struct {
	fleet   *Fleet
	by      *delegation
	group   *pleach.Group
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	lanes map[int]*lane // to other delegates
	over  bool          // nothing is started any more
}

func newSession(d *delegation, g *pleach.Group) *session {
	s := &session{fleet: d.fleet, by: d, group: g, lanes: make(map[int]*lane)}
	s.life, s.end = context.WithCancel(d.fleet.life)
	return s
}

// serve takes part in the backbone until the machine leaves it, or this process is removed.
func (s *session) serve() {
	s.group.Handle(requestName, s.fleet.answer)
	s.running.Go(s.watch)
	s.running.Go(s.receive)
	<-s.life.Done()
	_ = s.group.Abort()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.running.Wait()
	s.fleet.step(func(now relay.Time) {
		s.fleet.backbone = nil
		s.fleet.machine.SetBackbone(now, nil)
	})
	s.by.step((*backbone.Machine).Left)
}

// announce announces the address of this process until the session ends: that waits for a quorum in
// the zone.
func (s *session) announce(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.running.Go(func() { _ = s.fleet.tell(s.life, address) })
	}
}

// watch takes in views of the backbone.
func (s *session) watch() {
	defer s.end()
	for v := range s.group.Views(s.life) {
		s.by.step(func(m *backbone.Machine, now backbone.Time) { m.Installed(now, backboneView(v)) })
		peers := []relay.Peer{}
		for _, m := range v.Members() {
			peers = append(peers, peerOf(m))
		}
		s.mu.Lock()
		for rank, l := range s.lanes {
			if !v.Has(rank) {
				delete(s.lanes, rank)
				l.end()
			}
		}
		s.mu.Unlock()
		s.fleet.step(func(now relay.Time) { s.fleet.machine.SetBackbone(now, peers) })
	}
}

// receive takes in what other delegates send.
func (s *session) receive() {
	f := s.fleet
	for m, err := range s.group.Messages(s.life) {
		if err == nil && m.Direct { // the machine asks for what is lost
			f.step(func(now relay.Time) { _ = f.machine.FromPeer(now, m.From, bytes.Clone(m.Data)) })
			f.inbox.room()
			f.casts.room()
		}
	}
}
