package pleach

// What a member saves of its vote, and what a process finds of it when it is started again:
// see package folder.

import (
	"fmt"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/folder"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// open locks the folder of this process, and returns the seat that it has. A folder that
// cannot be used is a mistake in the settings, which does not pass.
func (s *initialState) open(c *Config) (*membership.Seat, error) {
	saved, err := s.openFolder(c)
	if err != nil {
		return nil, &ConfigError{"DataDir", fmt.Sprintf("is %q: %v", c.DataDir, err)}
	}
	return saved, nil
}

// openFolder locks the folder of this process, and returns the seat that it has.
func (s *initialState) openFolder(c *Config) (saved *membership.Seat, err error) {
	if c.DataDir == "" {
		return nil, nil
	}
	if s.data, err = folder.Open(c.DataDir, c.Group); err != nil {
		return nil, err
	}
	saved, s.former, s.self.Nonce, err = s.data.Take(s.self.Identity, s.self.Nonce)
	return saved, err
}

// closeAll releases what a process that has not become a member has opened.
func (s *initialState) closeAll(listener net.Listener) error {
	s.data.Close()
	if s.candidate != nil {
		return s.candidate.Close()
	}
	return listener.Close()
}

// slowSave is how long saving may take until it is told.
const slowSave = time.Second

// saveVote saves the state of this member beside it, within node.Do. Saving is tried again
// until it succeeds.
func (g *session) saveVote(state []byte, sync bool) {
	began := time.Now()
	slow := time.AfterFunc(slowSave, func() {
		g.noteSave(fmt.Errorf("the disk is slow: saving has begun at %s and goes on", began.Format(time.TimeOnly)))
	})
	g.data.SaveLater(state, sync, func(err error) {
		if slow.Stop(); err != nil {
			g.noteSave(err)
		} else if took := time.Since(began); took > slowSave {
			g.noteSave(fmt.Errorf("the disk is slow: saving took %v", took.Round(time.Millisecond)))
		}
		_ = g.node.Do(func(now protocol.Time) { g.inputs.Saved(now, err) })
	})
}

// saveError is why a member could not vote.
type saveError struct {
	at  time.Time
	err error
}

// noteSave tells why this member does not vote.
func (g *session) noteSave(err error) {
	g.log.Warn("this member does not vote before its state is saved", "folder", g.data.Path(), "cause", err)
	g.notSaved.Store(&saveError{time.Now(), fmt.Errorf("Config.DataDir: %w", err)})
}

// forgetVote forgets the seat of this member, within node.Do: it is no longer one.
func (g *session) forgetVote() {
	v := g.view.Load()
	if err := g.data.Leave(v, g.machine.DecisionsUpTo(v.Number)); err != nil {
		g.log.Warn("cannot save that this process is no longer a member", "cause", err)
	}
}
