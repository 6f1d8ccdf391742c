package datadir

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// slowSave is the duration after which a save is logged as slow.
const slowSave = time.Second

// Vote saves the vote of a running member. A member does not vote before its state is saved,
// so Vote logs and records what delays or prevents saving.
type Vote struct {
	Dir    *Dir
	Logger *slog.Logger
	// Saved is called after each save, with its error.
	Saved func(error)

	failure atomic.Pointer[failure] // the last failure; nil: none
}

// failure is a reason for which a member could not vote.
type failure struct {
	at  time.Time
	err error
}

// Save saves a state in the background.
func (v *Vote) Save(state []byte, sync bool) {
	began := time.Now()
	slow := time.AfterFunc(slowSave, func() {
		v.note(fmt.Errorf("the disk is slow: saving began at %s and has not finished", began.Format(time.TimeOnly)))
	})
	v.Dir.SaveLater(state, sync, func(err error) {
		slow.Stop()
		if err != nil {
			v.note(err)
		} else if took := time.Since(began); took > slowSave {
			v.note(fmt.Errorf("the disk is slow: saving took %v", took.Round(time.Millisecond)))
		}
		v.Saved(err)
	})
}

// sameFailure is the time for which a failure with the same text is not logged again.
const sameFailure = time.Minute

// note records why the member does not vote, and logs it unless it was logged within sameFailure.
func (v *Vote) note(err error) {
	now := &failure{time.Now(), fmt.Errorf("Config.Recovery.DataDir: %w", err)}
	last := v.failure.Swap(now)
	if last == nil || last.err.Error() != now.err.Error() || now.at.Sub(last.at) > sameFailure {
		v.Logger.Warn("this member does not vote before its state is saved", "directory", v.Dir.path, "cause", err)
	}
}

// LastFailure returns the last failure to save in time, and when it occurred; nil: none.
func (v *Vote) LastFailure() (at time.Time, err error) {
	if t := v.failure.Load(); t != nil {
		return t.at, t.err
	}
	return at, nil
}
