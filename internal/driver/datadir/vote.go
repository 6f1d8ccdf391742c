package datadir

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// slowSave is how long saving may take until it is told.
const slowSave = time.Second

// Vote is what a member saves while it goes on. A member does not vote before its state is
// saved, so it is told what keeps it from that.
type Vote struct {
	Folder *Folder
	Logger *slog.Logger
	// Saved is called when a state is saved, or with why it is not.
	Saved func(error)

	trouble atomic.Pointer[trouble] // the last one; nil: none
}

// trouble is why a member could not vote.
type trouble struct {
	at  time.Time
	err error
}

// Save saves a state beside the member.
func (v *Vote) Save(state []byte, sync bool) {
	began := time.Now()
	slow := time.AfterFunc(slowSave, func() {
		v.note(fmt.Errorf("the disk is slow: saving has begun at %s and goes on", began.Format(time.TimeOnly)))
	})
	v.Folder.SaveLater(state, sync, func(err error) {
		slow.Stop()
		if err != nil {
			v.note(err)
		} else if took := time.Since(began); took > slowSave {
			v.note(fmt.Errorf("the disk is slow: saving took %v", took.Round(time.Millisecond)))
		}
		v.Saved(err)
	})
}

// sameTrouble is how long after it the same trouble is not logged again.
const sameTrouble = time.Minute

// note tells why the member does not vote.
func (v *Vote) note(err error) {
	now := &trouble{time.Now(), fmt.Errorf("Config.Recovery.DataDir: %w", err)}
	last := v.trouble.Swap(now)
	if last == nil || last.err.Error() != now.err.Error() || now.at.Sub(last.at) > sameTrouble {
		v.Logger.Warn("this member does not vote before its state is saved", "folder", v.Folder.path, "cause", err)
	}
}

// Trouble returns the last trouble with saving, and when it was; nil: there was none.
func (v *Vote) Trouble() (at time.Time, err error) {
	if t := v.trouble.Load(); t != nil {
		return t.at, t.err
	}
	return at, nil
}
