package engine

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
)

// callTable holds the calls that are not below the low-water mark.
type callTable struct {
	byNumber map[uint64]*callState
	unused   []*callState // of former calls, for later ones
	next     uint64       // number of the next call
	// returned: this process's own calls before it have returned. completed: the
	// parts of taken-over tasks are done, too. finished: none of them is held. Each
	// is at most the one before it, and returned at most next.
	returned, completed, finished uint64
	last                          Signature // of the call begun last
	lastDone                      doneCall
	mismatch                      *MismatchError // the last one that is known
	missed                        *MismatchError // of a call that had returned here; the next one tells it
}

// doneCall is a call that has returned.
type doneCall struct {
	number, agreement uint64
	signature         Signature
	at                time.Duration // by the watchdog; 0: just now
	err               error
}

// callState is the state of one call, by its number: this process's part in it, the
// messages that have arrived for it, and those that were sent in it.
type callState struct {
	number uint64
	local  *localPart // nil: this process has not made the call yet
	own    localPart  // what local points to
	task   Task       // this process's own
	// firstFrom is the rank whose message arrived first (-1: none has), and firstSig
	// what that process called.
	firstFrom int
	firstSig  Signature
	// oddFrom is the rank whose message was the first to differ from that (-1: none
	// has), and oddSig what it called.
	oddFrom int
	oddSig  Signature

	mailbox mailbox
	log     []*logEntry
	// fullDigests: the call is held, so digests read all of a message.
	fullDigests bool
	runs        runs // of tasks whose parts this process runs
	// finishedByAll is the minimum finished-call count over the processes whose
	// messages have arrived. It counts if they are all of one view.
	finishedByAll uint64
	view          uint32
	mixedViews    bool

	returned  bool // this process's own call has
	err       error
	ended     chan struct{} // closed when no task needs to run on; nil: no goroutine waits for it
	changed   notify.Notifier
	ticked    time.Duration // when the watchdog has seen it last
	waited    time.Duration // for processes that seem stuck
	agreement *agreement    // of an Agree or a Shrink
	within    time.Duration // its own progress timeout; 0: that of all calls
}

// localPart is what this process does in a call.
type localPart struct {
	signature Signature
	run       func(*Task) error // runs one task's part
	began     time.Duration     // by the watchdog; 0: just now
}

// call returns the state of a call that is not below the low-water mark.
func (e *Engine) call(number uint64) *callState {
	o := e.calls.byNumber[number]
	if o == nil {
		o = e.calls.takeUnused()
		o.number, o.finishedByAll, o.view = number, e.calls.finished, uint32(e.peers.view)
		o.firstFrom, o.oddFrom = -1, -1
		e.calls.byNumber[number] = o
		_, o.fullDigests = e.holds.first()
		if e.err != nil {
			o.end(e.err)
		}
	}
	return o
}

// Limits of what is kept for later calls.
const (
	maxUnused         = 8    // calls
	maxUnusedMessages = 1024 // in and out, of each
)

// takeUnused returns a call without content.
func (c *callTable) takeUnused() *callState {
	last := len(c.unused) - 1
	if last < 0 {
		return &callState{}
	}
	o := c.unused[last]
	c.unused[last], c.unused = nil, c.unused[:last]
	return o
}

// drop forgets a call that all processes have finished. Its memory serves a later call
// unless a goroutine may still use it: that of a taken-over task runs on until it notices,
// and a call that has ended early is left to what it has left behind.
func (e *Engine) drop(o *callState) {
	alone := len(o.runs) == 1 && o.runs[0] == taskRun{e.config.Rank, true}
	again := alone && o.err == nil && o.agreement == nil && len(e.calls.unused) < maxUnused &&
		len(o.mailbox.slots) <= maxUnusedMessages && cap(o.log) <= maxUnusedMessages
	o.end(errFinishedByAll)
	delete(e.calls.byNumber, o.number)
	if again {
		o.mailbox.clear()
		*o = callState{mailbox: o.mailbox, log: o.log, runs: o.runs[:0]}
		e.calls.unused = append(e.calls.unused, o)
	}
}

// end notes that no task needs to run on, because of an error or because all processes
// have finished the call.
func (o *callState) end(err error) {
	if o.err == nil {
		o.err = err
		if o.ended != nil {
			close(o.ended)
		}
		for _, s := range o.mailbox.all() {
			s.wakeTask()
		}
		o.changed.Notify()
	}
}

// untilEnd returns a channel that is closed when no task needs to run on. The call has not
// ended.
func (o *callState) untilEnd() chan struct{} {
	if o.ended == nil {
		o.ended = make(chan struct{})
	}
	return o.ended
}

// agreementNumber returns which Agree or Shrink the call is, from 1, or 0 if it is
// none.
func (o *callState) agreementNumber() uint64 {
	if o.agreement == nil {
		return 0
	}
	return o.agreement.number + 1
}

// runs are the parts of tasks in a call. Most calls have one, so a list is fastest.
type runs []taskRun

type taskRun struct {
	task int
	done bool
}

func (r runs) find(task int) (done, begun bool) {
	for _, one := range r {
		if one.task == task {
			return one.done, true
		}
	}
	return false, false
}

func (r *runs) set(task int, done bool) {
	for i := range *r {
		if one := &(*r)[i]; one.task == task {
			one.done = done
			return
		}
	}
	*r = append(*r, taskRun{task, done})
}

// callContext is the context of a call's background work. It is canceled by closing a
// channel.
type callContext struct {
	context.Context
	done chan struct{}
}

// Done implements [context.Context].
func (c callContext) Done() <-chan struct{} { return c.done }

// Err implements [context.Context].
func (c callContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}
