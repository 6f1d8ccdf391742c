package shard

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/handoff"
	"github.com/pleach-go/pleach/internal/services/tokens"
	"github.com/pleach-go/pleach/protocol"
)

// Shards is the partitions of a group, as this process sees them. Its methods are safe for
// concurrent use.
type Shards struct {
	group  *pleach.Group
	c      Config
	topic  *pleach.Subscription
	began  time.Time
	ctx    context.Context // ends with Leave
	cancel context.CancelFunc
	mark   *tokens.Mark
	tasks  sync.WaitGroup // the goroutines of this Shards

	mu      sync.Mutex
	machine *handoff.Machine
	view    pleach.View
	owned   map[int]*ownership // by partition
	outbox  []handoff.Message
	changed chan struct{} // closed at the next change
	stats   Stats
	closed  bool
	failed  error // why this process takes no part any more: its tokens cannot be kept on disk

	// Signals, with room for one each: the machine has made a step, there is something to send,
	// and a majority should be asked now.
	wake, outgoing, ask chan struct{}
	round
}

// Owner is the owner of a partition.
type Owner struct {
	Partition int
	Member    pleach.Member
	// Token is the fencing token of the member. A later owner of the partition has a higher one.
	Token uint64
}

// Change is a partition whose owner has changed.
type Change struct {
	Partition int
	// Owner is the new owner, or nil while there is none.
	Owner *Owner
	// Self says that the owner is this process.
	Self bool
}

// Stats counts what this process has done with partitions.
type Stats struct {
	// Owned is how many partitions this process owns. Draining of them are on their way to
	// other members.
	Owned    int `json:"owned"`
	Draining int `json:"draining"`
	// Begun counts partitions that this process has begun to own, Released those that it has
	// handed over, and Lost those whose ownership ended otherwise.
	Begun    uint64 `json:"begun"`
	Released uint64 `json:"released"`
	Lost     uint64 `json:"lost"`
	// Lapses counts how often this process has stopped serving, because no majority of its
	// view answered or the quorum was lost.
	Lapses uint64 `json:"lapses"`
	// NotOwner counts calls of Serve that returned ErrNotOwner.
	NotOwner uint64 `json:"not_owner"`
}

// New divides keys among the members of a group, of which this process is one. It returns at
// once; partitions begin as soon as the members have found out who holds what. Leave ends it.
func New(g *pleach.Group, c Config) (*Shards, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	mark, err := tokens.Open(cmp.Or(c.DataDir, g.DataDir()), "shard/"+c.Name)
	if err != nil {
		return nil, &pleach.ConfigError{Field: "DataDir", Reason: err.Error(), Err: err}
	}
	floor, err := c.floor(mark)
	if err != nil {
		return nil, err
	}
	topic, err := g.Subscribe(topicPrefix + c.Name)
	if err != nil {
		return nil, err
	}
	s := &Shards{
		group: g, c: c, topic: topic, began: time.Now(), mark: mark,
		machine: handoff.New(handoff.Config{
			Partitions: c.Partitions, Lease: protocol.Time(c.Lease), Handoff: protocol.Time(c.HandoffTimeout), Floor: floor,
		}),
		owned: make(map[int]*ownership), changed: make(chan struct{}),
		wake: make(chan struct{}, 1), outgoing: make(chan struct{}, 1), ask: make(chan struct{}, 1),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.handle()
	for _, f := range []func(){s.followViews, s.receive, s.send, s.runClock, s.renew} {
		s.tasks.Go(f)
	}
	return s, nil
}

// now is the time of the machine: that of this process since New, by the monotonic clock.
func (s *Shards) now() protocol.Time { return protocol.Time(time.Since(s.began)) + 1 }

// Partition returns the partition of a key, the same at all members.
func (s *Shards) Partition(key string) int { return int(handoff.Hash(key) % uint64(s.c.Partitions)) }

// Owner returns the owner of a key as far as this process knows, or false while there is none.
// It is where a request goes: the owner itself has the last word, in [Shards.Serve].
func (s *Shards) Owner(key string) (Owner, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.ownerOf(s.Partition(key)); o != nil {
		return *o, true
	}
	return Owner{}, false
}

// ownerOf returns the owner of a partition, or nil.
func (s *Shards) ownerOf(partition int) *Owner {
	if p, token, ok := s.machine.Owner(partition); ok {
		if m, ok := s.view.Member(p.Rank); ok && m.Incarnation == p.Incarnation {
			return &Owner{partition, m, token}
		}
	}
	return nil
}

// Err returns why partitions do not begin at this process: a [*SettingsError] if another member has
// other settings, or the error of Config.DataDir. It returns nil otherwise.
func (s *Shards) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hindrance()
}

// Owned yields the partitions that this process serves, with their tokens.
func (s *Shards) Owned() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for p := range s.c.Partitions {
			s.mu.Lock()
			token, ok := s.machine.Serves(s.now(), p)
			s.mu.Unlock()
			if ok && !yield(p, token) {
				return
			}
		}
	}
}

// Changes yields the owner of every partition that has one, and then each partition whose
// owner changes. A slow caller gets only the latest owner of a partition. It ends when ctx ends
// and after Leave.
func (s *Shards) Changes(ctx context.Context) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		known := make([]Owner, s.c.Partitions) // a zero token: none
		for {
			s.mu.Lock()
			var news []Change
			for p := range known {
				c := Change{Partition: p, Owner: s.ownerOf(p)}
				var last Owner
				if c.Owner != nil {
					last, c.Self = *c.Owner, c.Owner.Member.Rank == s.group.Rank()
				}
				if last.Token != known[p].Token || last.Member.Rank != known[p].Member.Rank {
					known[p] = last
					news = append(news, c)
				}
			}
			changed := s.changed
			s.mu.Unlock()
			for _, c := range news {
				if !yield(c) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// Stats returns counters of this process.
func (s *Shards) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Owned = len(s.owned)
	for _, o := range s.owned {
		if o.draining {
			stats.Draining++
		}
	}
	return stats
}

// Leave hands over what this process owns: it waits until the work on it has ended, for
// Config.HandoffTimeout at most, and tells the others. They begin with the next view without
// this process, so [pleach.Group.Leave] or [pleach.Group.Close] follows. If ctx ends first, the contexts
// of running work are canceled, and the error of ctx is returned.
func (s *Shards) Leave(ctx context.Context) (err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.step(func(now protocol.Time) { s.machine.Leave(now) })
	for err == nil && !s.idle() {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if s.idle() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.end()
	return err
}

// idle reports whether nothing is left to hand over or to send. A process that is not a member
// has nothing to send.
func (s *Shards) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Holds() == 0 && (len(s.outbox) == 0 || s.group.Err() != nil)
}

// end ends the goroutines and the work that is left.
func (s *Shards) end() {
	s.cancel()
	s.unhandle()
	_ = s.topic.Close()
	s.step(func(protocol.Time) { s.machine.Suspend() })
	s.tasks.Wait()
}
