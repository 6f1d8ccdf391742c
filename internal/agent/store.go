package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/backfill"
	"github.com/pleach-go/pleach/internal/agent/journal"
	"github.com/pleach-go/pleach/internal/agent/retain"
	"github.com/pleach-go/pleach/internal/folder"
	"github.com/pleach-go/pleach/internal/notify"
)

// The store takes in what the group delivers, in order: it gives each message its place in the
// stream of its sender, writes it to the journal, and then shows it to subscribers. So a
// subscriber has no message that a killed agent does not know of when it is started again.
// When a membership begins, what was missed comes first (fill.go); what arrives meanwhile waits.

// arrivalBytes is what an arrival takes beside its data, about.
const arrivalBytes = 256

// saveAgain is how long the store waits after the journal has failed.
const saveAgain = 10 * time.Second

// store is the log of messages and what fills it.
type store struct {
	log     *retain.Log
	limits  retain.Limits
	logger  *slog.Logger
	arrived chan struct{}   // there is something in the queue
	taken   notify.Notifier // the queue has room, or the positions have changed
	stopped chan struct{}
	done    sync.WaitGroup
	again   bool // an agent before this one has left what the journal has

	mu      sync.Mutex
	queue   []arrival
	bytes   int
	callOff context.CancelFunc // ends the fill under way, until its view has begun; nil: there is none
	// positions are what the log has of the group, and reached is the view up to which it has
	// all that the group delivers. Only the store's goroutine changes them.
	positions backfill.Positions
	reached   uint64
	saveErr   error // of the journal, if it has failed

	membership pleach.Member // this process, in the present membership
	view       pleach.View   // of the messages that are taken in
	ended      bool          // the agent has ended before it has filled what it missed
	journal    *journal.Journal
	failedAt   time.Time
}

// arrival is a message, or a view that begins.
type arrival struct {
	message retain.Message
	counted bool // it is a broadcast of a member of the view
	begins  *pleach.View
	group   *pleach.Group
}

// snapshot is what a segment of the journal begins with, and what a record has where something
// begins that does not follow from messages and views.
type snapshot struct {
	Log       retain.State   `json:"log"`
	Positions backfill.State `json:"positions"`
}

// The first byte of a record of the journal.
const (
	recordMessage  = 'm'
	recordView     = 'v'
	recordSnapshot = 's'
)

// newStore makes a store with what the journal in a folder has, or without one if that is
// empty. A journal that does not work is told, and done without.
func newStore(dir string, limits retain.Limits, logger *slog.Logger) (*store, error) {
	s := &store{
		log: retain.New(newEpoch(), limits), limits: limits, logger: logger,
		arrived: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if dir == "" {
		return s, nil
	}
	j, err := journal.Open(filepath.Join(dir, "messages"), int64(limits.Bytes))
	switch {
	case errors.Is(err, folder.ErrInUse):
		return nil, fmt.Errorf("--data-dir is %q: %w", dir, err)
	case err != nil:
		s.saved(err)
		return s, nil
	}
	s.journal = j
	if err := j.Read(s.restore, s.replay); err != nil {
		s.logger.Warn("the log of messages was damaged: the agent gets from others what they still have", "cause", err)
	}
	if s.again {
		s.log.Begin(newEpoch())
	}
	s.journal.Resume() // or the first record begins a segment
	s.saveSnapshot()
	return s, nil
}

// restore takes the snapshot of a segment.
func (s *store) restore(b []byte) error {
	var from snapshot
	if err := json.Unmarshal(b, &from); err != nil {
		return err
	}
	if err := s.log.Restore(&from.Log); err != nil {
		return err
	}
	s.positions.Restore(&from.Positions)
	s.again = true
	return nil
}

// replay takes another record.
func (s *store) replay(b []byte) error {
	if len(b) == 0 {
		return retain.ErrMalformed
	}
	switch b[0] {
	case recordSnapshot:
		return s.restore(b[1:])
	case recordView:
		var v backfill.View
		if err := json.Unmarshal(b[1:], &v); err != nil {
			return err
		}
		s.positions.Begin(v)
	case recordMessage:
		m, err := retain.Decode(b[1:])
		if err != nil {
			return err
		}
		if m.Index > 0 {
			s.positions.Reached(backfill.Stream{View: m.View, Rank: m.From}, m.Index)
		}
		s.log.Add(m)
	default:
		return retain.ErrMalformed
	}
	return nil
}

// push hands something to the store. It waits while the queue is full; a fill that the queue
// waits for is called off, since replies to it come by the goroutine that waits here.
func (s *store) push(a arrival) {
	s.mu.Lock()
	for s.bytes > s.limits.Bytes {
		taken := s.taken.Wait()
		if s.callOff != nil {
			s.callOff()
		}
		s.mu.Unlock()
		select {
		case <-taken:
		case <-s.stopped:
			return
		}
		s.mu.Lock()
	}
	s.queue, s.bytes = append(s.queue, a), s.bytes+len(a.message.Data)+arrivalBytes
	s.mu.Unlock()
	notify.Signal(s.arrived)
}

// run takes in what arrives, until stop. A fill ends with ctx.
func (s *store) run(ctx context.Context) {
	for {
		select {
		case <-s.arrived:
		case <-s.stopped:
			if s.takeAll(ctx); s.journal != nil {
				_ = s.journal.Close() // what was written is in the system's hands
			}
			return
		}
		s.takeAll(ctx)
	}
}

// stop takes in what is there, and closes the journal.
func (s *store) stop() {
	close(s.stopped)
	s.done.Wait()
}

// takeAll takes in what is in the queue.
func (s *store) takeAll(ctx context.Context) {
	s.mu.Lock()
	queue := s.queue
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	s.taken.Notify()
	var batch []retain.Message
	for i := range queue {
		a := &queue[i]
		if s.ended {
			return
		}
		if a.begins == nil {
			batch = append(batch, s.place(a))
			continue
		}
		s.publish(batch)
		batch = nil
		s.begin(ctx, a.group, a.begins)
	}
	s.publish(batch)
}

// place gives a message the name of its sender, and its place in the sender's stream.
func (s *store) place(a *arrival) retain.Message {
	m := a.message
	if m.FromID == "" {
		from, _ := s.view.Member(m.From)
		m.FromID = from.ID
	}
	if a.counted {
		s.mu.Lock()
		m.Index = s.positions.Next(backfill.Stream{View: m.View, Rank: m.From})
		s.mu.Unlock()
	}
	return m
}

// publish writes messages to the journal, and then shows them to subscribers.
func (s *store) publish(batch []retain.Message) {
	if len(batch) == 0 {
		return
	}
	if s.journal != nil {
		records := make([][]byte, len(batch))
		for i := range batch {
			records[i] = batch[i].Append([]byte{recordMessage})
		}
		s.save(records...)
	}
	for i := range batch {
		s.log.Add(batch[i])
	}
}

// begin begins a view. If the agent ends before it has filled what it missed, nothing is taken
// in any more: the agent fills it when it is started again.
func (s *store) begin(ctx context.Context, g *pleach.Group, v *pleach.View) {
	self, ok := memberOf(v, g.Self().ID)
	if !ok {
		return // it is no longer a member
	}
	name := backfill.View{Number: v.Number, Print: printOf(v), Members: v.Size()}
	if self.Incarnation != s.membership.Incarnation || self.Nonce != s.membership.Nonce {
		if s.ended = !s.enter(ctx, g, v, self.Rank); s.ended {
			return
		}
		s.membership = self
	}
	s.view = *v
	s.mu.Lock()
	s.positions.Begin(name)
	s.reached, s.callOff = v.Number, nil
	s.mu.Unlock()
	s.taken.Notify()
	if b, err := json.Marshal(name); err == nil && s.journal != nil { // it has no value that cannot be written
		s.save(append([]byte{recordView}, b...))
	}
}

// memberOf finds a member by its ID.
func memberOf(v *pleach.View, id string) (pleach.Member, bool) {
	for _, m := range v.Members() {
		if m.ID == id {
			return m, true
		}
	}
	return pleach.Member{}, false
}

// printOf is a hash of the members of a view, which all of them agree on.
func printOf(v *pleach.View) uint64 {
	h := fnv.New64a()
	for _, m := range v.Members() {
		fmt.Fprintf(h, "%d %q %d %d\n", m.Rank, m.ID, m.Incarnation, m.Nonce)
	}
	return h.Sum64()
}

// save writes records to the journal. After an error it waits for a while before it tries
// again: the agent goes on without.
func (s *store) save(records ...[]byte) {
	if s.saveErr != nil && time.Since(s.failedAt) < saveAgain {
		return
	}
	var err error
	if s.journal.Full() {
		err = s.beginSegment()
	}
	if err == nil {
		err = s.journal.Append(records...)
	}
	s.saved(err)
}

// beginSegment begins a segment of the journal.
func (s *store) beginSegment() error { return s.journal.Begin(s.snapshot()) }

// saveSnapshot writes a snapshot to the journal.
func (s *store) saveSnapshot() {
	if s.journal != nil {
		s.save(append([]byte{recordSnapshot}, s.snapshot()...))
	}
}

func (s *store) snapshot() []byte {
	b, _ := json.Marshal(snapshot{s.log.State(), s.positions.State()}) // it has no value that cannot be written
	return b
}

// saved notes whether the journal works, and tells when that changes.
func (s *store) saved(err error) {
	switch {
	case err != nil && s.saveErr == nil:
		s.logger.Error("the log of messages is not saved: after a restart, the agent has only what others still have", "cause", err)
	case err == nil && s.saveErr != nil:
		s.logger.Info("the log of messages is saved again")
	}
	if err != nil {
		s.failedAt = time.Now()
	}
	s.mu.Lock()
	s.saveErr = err
	s.mu.Unlock()
}

// saveError returns why the log is not saved, or nil.
func (s *store) saveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saveErr
}
