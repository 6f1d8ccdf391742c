package collective

import (
	"context"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/notify"
)

// op is one call, by its number, as far as this process knows of it: its own part
// in it, what has come for it, and what was sent in it.
type callState struct {
	number uint64
	local  *localPart // nil: this process has not come to it yet
	// witness is whose message came first, and what it called.
	firstFrom int
	firstSig  signature

	mailbox map[envelope]*slot
	log     []*logEntry
	runs    runs // of tasks whose part is under way here
	// low: everybody whose letters have come had finished the calls before, in
	// one view, unless they are of several.
	piggyback  uint64
	view       uint32
	mixedViews bool
	finished   bool // this process's own call is over
	err        error
	ctx        callContext // ends when nothing more is to be done
	changed    notify.Notifier
	reminded   bool       // it has taken long, and everybody was asked
	agreement  *agreement // of an Agree or a Shrink
	// Memory for what most calls need, so that it need not be allocated bit by bit.
	inline struct {
		local       localPart
		runs        [1]run
		slots       [4]slot
		entries     [4]logEntry
		log         [4]*logEntry
		usedSlots   int // used
		usedEntries int // used
	}
}

// runs are tasks' parts in a call: done or not.
type runs []run

type run struct {
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
	*r = append(*r, run{task, done})
}

// ending is a context that one channel makes: there is one for every call, and most
// calls have no use for more.
type callContext struct {
	context.Context
	done chan struct{}
}

// Done implements [context.Context].
func (e callContext) Done() <-chan struct{} { return e.done }

// Err implements [context.Context].
func (e callContext) Err() error {
	select {
	case <-e.done:
		return context.Canceled
	default:
		return nil
	}
}

// key is which letter of a call it is. There is at most one of a key: letters are
// determined by the tasks' inputs, so a second one is a copy.
type envelope struct{ step, from, to int }

// slot is where a letter arrives, or is waited for.
type slot struct {
	payload payload
	here    bool
	wait    chan struct{}
}

// sending is a letter that was sent, kept in case its receiver's task moves.
type logEntry struct {
	envelope envelope
	header   [headerSize]byte
	payload  payload
	to       int // the rank it was sent to
}

func (s *logEntry) size() int { return len(s.header) + len(s.payload.bytes) + 64 }

// call is what a process does in an op.
type localPart struct {
	signature signature
	run       func(*task) error // one task's part
	began     time.Time
}

// at returns the op of a number, which is not below the floor.
func (e *Engine) at(number uint64) *callState {
	o := e.calls[number]
	if o == nil {
		o = &callState{
			number: number, mailbox: make(map[envelope]*slot), ctx: callContext{e.ctx, make(chan struct{})},
			piggyback: e.finished, view: uint32(e.view), firstFrom: -1,
		}
		o.runs, o.log = o.inline.runs[:0], o.inline.log[:0]
		e.calls[number] = o
		if e.err != nil {
			o.end(e.err)
		}
	}
	return o
}

// slot returns where a letter is or will be.
func (o *callState) slot(k envelope) *slot {
	s := o.mailbox[k]
	if s == nil {
		if i := o.inline.usedSlots; i < len(o.inline.slots) {
			s = &o.inline.slots[i]
			o.inline.usedSlots++
		} else {
			s = &slot{}
		}
		o.mailbox[k] = s
	}
	return s
}

// sending returns room for a letter that is sent.
func (o *callState) newLogEntry() *logEntry {
	if i := o.inline.usedEntries; i < len(o.inline.entries) {
		o.inline.usedEntries++
		return &o.inline.entries[i]
	}
	return &logEntry{}
}

// put takes a letter in. Copies are dropped.
func (o *callState) put(k envelope, p payload) {
	s := o.slot(k)
	if s.here {
		p.release()
		return
	}
	s.payload, s.here = p, true
	o.changed.Notify()
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// end says that nothing more is to be done, because of an error or because all
// have finished.
func (o *callState) end(err error) {
	if o.err == nil {
		o.err = err
		close(o.ctx.done)
		o.changed.Notify()
	}
}

// task is one task's part in a call, as its algorithm sees it. It does not know
// who owns the other tasks, nor whether this is the first time that it is done.
type task struct {
	e    *Engine
	call *callState
	ctx  context.Context
	id   int
	n    int // how many tasks there are
}

// own reports whether it is this process's own, rather than taken over.
func (t *task) own() bool { return t.id == t.e.config.Rank }

// send sends a letter to a task. The body is kept and must not be changed.
func (t *task) send(to, step int, body []byte) error {
	return t.sendPayload(to, step, payload{bytes: body})
}

// sendPage sends a letter to a task. What is on the page must not be changed; whoever
// sends it still has to drop it.
func (t *task) sendPayload(to, step int, p payload) error {
	e, o := t.e, t.call
	k := envelope{step, t.id, to}
	e.mu.Lock()
	if o.err != nil {
		defer e.mu.Unlock()
		return o.err
	}
	h := header{
		msgType: typeMessage, signature: o.local.signature, number: o.number,
		from: t.id, to: to, step: step, view: uint32(e.view), piggyback: o.piggyback, lowWater: e.lowWater,
	}
	s := o.newLogEntry()
	s.envelope, s.payload, s.to = k, p, e.owner(to)
	h.append(s.header[:0])
	switch o.local.signature.failureMode {
	case runThrough:
		p.retain()
		o.log = append(o.log, s)
		e.logBytes += s.size()
	case corrected:
		s.to = to // whoever is dead is not stood in for
	}
	if s.to == e.config.Rank {
		o.put(k, payload{bytes: slices.Clone(p.bytes)})
		e.mu.Unlock()
		return nil
	}
	rank := s.to
	e.mu.Unlock()
	// Whoever is not there any more is replaced by the next view, and its
	// successor gets the letter then.
	if err := e.post(t.ctx, rank, s.header[:], p); err != nil && t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	return nil
}

// post hands a letter to the link, which uses the page until it has arrived.
func (e *Engine) post(ctx context.Context, rank int, head []byte, p payload) error {
	if e.zeroCopy == nil || p.buffer == nil {
		p.retain() // for ever
		return e.config.Link.Send(ctx, rank, head, p.bytes)
	}
	err := e.zeroCopy.SendOwned(ctx, rank, head, p.retain().bytes, p.buffer.release)
	if err != nil {
		p.release()
	}
	return err
}

// receive waits for a letter. Its body is the task's alone, until it sends it on.
func (t *task) receive(from, step int) ([]byte, error) {
	p, err := t.receivePayload(from, step)
	return p.bytes, err
}

// receivePage waits for a letter, too. Whoever drops the page afterwards saves the
// next letter an allocation.
func (t *task) receivePayload(from, step int) (payload, error) {
	e, o := t.e, t.call
	e.mu.Lock()
	s := o.slot(envelope{step, from, t.id})
	for !s.here {
		if o.err != nil {
			defer e.mu.Unlock()
			return payload{}, o.err
		}
		if s.wait == nil {
			s.wait = make(chan struct{})
		}
		wait := s.wait
		e.mu.Unlock()
		select {
		case <-wait:
		case <-o.ctx.Done():
		case <-t.ctx.Done():
			return payload{}, t.ctx.Err()
		}
		e.mu.Lock()
	}
	p := s.payload
	s.payload = payload{} // the slot stays, so that a copy is known
	e.mu.Unlock()
	return p, nil
}
