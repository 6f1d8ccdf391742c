package shard

import (
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/protocol"
)

// topicPrefix begins the names of topics and handlers in the group.
const topicPrefix = "pleach/shard/"

// step has the machine do something, and carries out what follows.
func (s *Shards) step(f func(now protocol.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	f(now)
	s.coverTokens(now)
	s.machine.Tick(now)
	s.carryOut()
}

// coverTokens writes down that tokens of this view are given, before one is. A process that cannot
// do so takes no part any more.
func (s *Shards) coverTokens(now protocol.Time) {
	if s.failed != nil {
		return
	}
	if err := s.mark.Cover(s.machine.Ceiling()); err != nil {
		s.failed = fmt.Errorf("shard: Config.DataDir: %w", err)
		s.machine.Leave(now)
	}
}

// followViews tells the machine of each view of the group.
func (s *Shards) followViews() {
	for v := range s.group.Views(s.ctx) {
		s.step(func(now protocol.Time) { s.install(now, v) })
		signal(s.ask)
	}
	s.step(func(protocol.Time) { s.machine.Suspend() })
}

// install has a view begin. Without a quorum, or outside the view, this process serves nothing.
func (s *Shards) install(now protocol.Time, v pleach.View) {
	self := s.group.Self()
	if m, ok := v.Member(self.Rank); !ok || m.Incarnation != self.Incarnation || v.Err != nil {
		s.machine.Suspend()
		return
	}
	s.view = v
	s.machine.Install(now, processOf(self), v.Number, s.c.members(v))
}

// receive tells the machine what the others broadcast. What is lost is asked for (renew).
func (s *Shards) receive() {
	for m, err := range s.topic.Messages(s.ctx) {
		if err != nil {
			continue
		}
		if msg, err := handoff.Decode(m.From, s.c.Partitions, m.Data); err == nil {
			s.step(func(now protocol.Time) { s.machine.Receive(now, msg) })
		}
	}
}

// send broadcasts what the machine has to say. What cannot be sent is lost: the others ask for
// reports that they lack, and wait for the rest by time.
func (s *Shards) send() {
	for {
		s.mu.Lock()
		var msg *handoff.Message
		if len(s.outbox) > 0 {
			msg = &s.outbox[0]
		}
		s.mu.Unlock()
		if msg == nil {
			select {
			case <-s.outgoing:
				continue
			case <-s.ctx.Done():
				return
			}
		}
		_ = s.topic.Broadcast(s.ctx, msg.Encode())
		s.step(func(protocol.Time) { s.outbox = s.outbox[1:] })
	}
}

// runClock has time pass in the machine.
func (s *Shards) runClock() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.step(func(protocol.Time) {})
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		next := s.machine.Next()
		s.mu.Unlock()
		wait := s.c.period() // the machine wants to know that this process runs
		if next != protocol.Never {
			wait = min(wait, max(time.Duration(next-s.now()), 0))
		}
		timer.Reset(wait)
	}
}
