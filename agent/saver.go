package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/pleach-go/pleach/agent/backfill"
	"github.com/pleach-go/pleach/agent/journal"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/internal/driver/datadir"
)

// The saver keeps the log of messages, and what it builds on, in a journal: they outlive the
// agent. A journal that fails is done without, and tried again after a while.

// saveAgain is how long the saver waits after the journal has failed.
const saveAgain = 10 * time.Second

// contents are what the journal has. Only the store's goroutine changes them.
type contents struct {
	log       *retention.Log
	positions backfill.Positions // in the group
	origins   backfill.Origins   // of the fleet
	again     bool               // an agent before this one has left what the journal has
}

// saver writes the contents to the journal.
type saver struct {
	contents
	logger   *slog.Logger
	journal  *journal.Journal // nil: nothing is saved
	failedAt time.Time

	errMu sync.Mutex
	err   error // of the journal, if it has failed
}

// snapshot is what a segment of the journal begins with, and what a record has where something
// begins that does not follow from messages and views.
type snapshot struct {
	Log       retention.State       `json:"log"`
	Positions backfill.State        `json:"positions"`
	Origins   backfill.OriginsState `json:"origins"`
}

// The first byte of a record of the journal.
const (
	recordMessage  = 'm'
	recordView     = 'v'
	recordSnapshot = 's'
)

// open reads what the journal in a directory has. If the journal does not work, the agent logs that
// and runs without it.
func (s *saver) open(dir string, bytes int) error {
	j, err := journal.Open(filepath.Join(dir, "messages"), int64(bytes))
	switch {
	case errors.Is(err, datadir.ErrInUse):
		return fmt.Errorf("--data-dir is %q: %w", dir, err)
	case err != nil:
		s.saved(err)
		return nil
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
	return nil
}

// close ends the saving. What was written is in the system's hands.
func (s *saver) close() {
	if s.journal != nil {
		_ = s.journal.Close()
	}
}

// restore takes the snapshot of a segment.
func (c *contents) restore(b []byte) error {
	var from snapshot
	if err := json.Unmarshal(b, &from); err != nil {
		return err
	}
	if err := c.log.Restore(&from.Log); err != nil {
		return err
	}
	c.positions.Restore(&from.Positions)
	c.origins.Restore(&from.Origins)
	c.again = true
	return nil
}

// replay takes another record.
func (c *contents) replay(b []byte) error {
	if len(b) == 0 {
		return retention.ErrMalformed
	}
	switch b[0] {
	case recordSnapshot:
		return c.restore(b[1:])
	case recordView:
		var v backfill.View
		if err := json.Unmarshal(b[1:], &v); err != nil {
			return err
		}
		c.positions.Begin(v)
	case recordMessage:
		m, err := retention.Decode(b[1:])
		if err != nil {
			return err
		}
		switch {
		case m.Fleet && m.Index > 0:
			c.origins.Reached(backfill.SentOf(&m))
		case m.Index > 0:
			c.positions.Reached(backfill.Stream{View: m.View, Rank: m.From}, m.Index)
		}
		c.log.Add(m)
	default:
		return retention.ErrMalformed
	}
	return nil
}

func (c *contents) snapshot() []byte {
	// it has no value that cannot be written
	b, _ := json.Marshal(snapshot{c.log.State(), c.positions.State(), c.origins.State()})
	return b
}

// saveMessages writes messages to the journal.
func (s *saver) saveMessages(batch []retention.Message) {
	if s.journal == nil {
		return
	}
	records := make([][]byte, len(batch))
	for i := range batch {
		records[i] = batch[i].Append([]byte{recordMessage})
	}
	s.save(records...)
}

// saveView writes to the journal that a view begins.
func (s *saver) saveView(v backfill.View) {
	if b, err := json.Marshal(v); err == nil { // it has no value that cannot be written
		s.save(append([]byte{recordView}, b...))
	}
}

// saveSnapshot writes a snapshot to the journal.
func (s *saver) saveSnapshot() { s.save(append([]byte{recordSnapshot}, s.snapshot()...)) }

// save writes records to the journal. After an error it waits for a while before it tries
// again: the agent runs without it meanwhile.
func (s *saver) save(records ...[]byte) {
	if s.journal == nil || s.saveError() != nil && time.Since(s.failedAt) < saveAgain {
		return
	}
	var err error
	if s.journal.Full() {
		err = s.journal.Begin(s.snapshot())
	}
	if err == nil {
		err = s.journal.Append(records...)
	}
	s.saved(err)
}

// saved notes whether the journal works, and tells when that changes.
func (s *saver) saved(err error) {
	s.errMu.Lock()
	before := s.err
	s.err = err
	s.errMu.Unlock()
	switch {
	case err != nil && before == nil:
		s.logger.Error("the log of messages is not saved: after a restart, the agent has only what others still have",
			"cause", err)
	case err == nil && before != nil:
		s.logger.Info("the log of messages is saved again")
	}
	if err != nil {
		s.failedAt = time.Now()
	}
}

// saveError returns why the log is not saved, or nil.
func (s *saver) saveError() error {
	s.errMu.Lock()
	defer s.errMu.Unlock()
	return s.err
}
