package shard

import (
	"context"

	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/protocol"
)

// ownership is a partition that this process owns, and the work on it.
type ownership struct {
	handoff.Item
	ctx      context.Context // of all work on the partition
	cancel   context.CancelCauseFunc
	working  int
	draining bool
}

func newOwnership(item handoff.Item) *ownership {
	o := &ownership{Item: item}
	o.ctx, o.cancel = context.WithCancelCause(context.Background())
	return o
}

// Serve calls f if this process owns the key, with the token of the ownership. While f runs,
// the partition does not move: the next owner waits until f has returned, for
// Config.HandoffTimeout at most. Then, and when this process loses touch with a majority, the
// context of f ends with the cause [ErrNotOwner]. What f writes after that is fenced by its
// token alone.
//
// If another member owns the key, or none does, the error is a [*NotOwnerError], or that of
// [Shards.Err] if there is one. Otherwise it is that of f.
func (s *Shards) Serve(ctx context.Context, key string, f func(ctx context.Context, token uint64) error) error {
	o, err := s.enter(s.Partition(key))
	if err != nil {
		return err
	}
	defer s.exit(o)
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(context.Cause(o.ctx)) })()
	return f(work, o.Token)
}

// enter begins work on a partition.
func (s *Shards) enter(partition int) (*ownership, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	o := s.owned[partition]
	if _, ok := s.machine.Serves(s.now(), partition); !ok || o == nil {
		s.stats.NotOwner++
		if err := s.hindrance(); err != nil {
			return nil, err
		}
		e := &NotOwnerError{Partition: partition, Owner: s.ownerOf(partition)}
		if e.Owner != nil && e.Owner.Member.Rank == s.group.Rank() {
			e.Owner = nil // it moves, or this process has lost touch
		}
		return nil, e
	}
	if o.ctx.Err() != nil { // the lease had lapsed, and holds again
		o.ctx, o.cancel = context.WithCancelCause(context.Background())
	}
	o.working++
	return o, nil
}

// exit ends work on a partition.
func (s *Shards) exit(o *ownership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.working--
	if s.checkDrained(o) {
		s.carryOut()
	}
}

// checkDrained releases a partition that is to move when the work on it has ended. It reports
// whether the machine has something to do.
func (s *Shards) checkDrained(o *ownership) bool {
	if !o.draining || o.working > 0 || s.owned[o.Partition] != o || s.ctx.Err() != nil {
		return false
	}
	if s.c.Release == nil {
		s.released(s.now(), o)
		return true
	}
	s.tasks.Go(func() {
		s.c.Release(o.ctx, o.Partition, o.Token)
		s.step(func(now protocol.Time) { s.released(now, o) })
	})
	return false
}

// released ends an ownership, unless that has happened meanwhile.
func (s *Shards) released(now protocol.Time, o *ownership) {
	if s.owned[o.Partition] == o {
		delete(s.owned, o.Partition)
		s.stats.Released++
		s.machine.Drained(now, o.Item)
	}
}

// carryOut does what the machine wants, and wakes those that wait.
func (s *Shards) carryOut() {
	for again := true; again; {
		a := s.machine.Take()
		s.endWork(&a)
		for _, item := range a.Begin {
			s.stats.Begun++
			s.owned[item.Partition] = newOwnership(item)
		}
		s.outbox = append(s.outbox, a.Send...)
		again = false
		for _, item := range a.Drain {
			if o := s.owned[item.Partition]; o != nil && o.Token == item.Token {
				o.draining = true
				again = s.checkDrained(o) || again
			}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
	signal(s.wake)
	signal(s.outgoing)
}

// endWork cancels the contexts of work that must end.
func (s *Shards) endWork(a *handoff.Actions) {
	for _, item := range a.Stop {
		if o := s.owned[item.Partition]; o != nil && o.Token == item.Token {
			delete(s.owned, item.Partition)
			s.stats.Lost++
			o.cancel(ErrNotOwner)
		}
	}
	if a.Lapse {
		s.stats.Lapses++
		for _, o := range s.owned {
			o.cancel(ErrNotOwner)
		}
	}
}

// signal wakes the goroutine that reads a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
