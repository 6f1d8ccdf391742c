package collective

import (
	"context"
	"slices"
	"time"
)

// op is one call, by its number, as far as this process knows of it: its own part
// in it, what has come for it, and what was sent in it.
type op struct {
	number uint64
	call   *call // nil: this process has not come to it yet
	// witness is whose message came first, and what it called.
	witness   int
	witnessed signature

	box  map[key]*slot
	sent []*sending
	runs map[int]bool // tasks whose part is under way here: done or not
	// low: everybody whose letters have come had finished the calls before, in
	// one view, unless they are of several.
	low      uint64
	view     uint32
	several  bool
	finished bool // this process's own call is over
	err      error
	ctx      context.Context // ends when nothing more is to be done
	cancel   context.CancelFunc
	changed  bell
	reminder *time.Timer
	agreement
}

// key is which letter of a call it is. There is at most one of a key: letters are
// determined by the tasks' inputs, so a second one is a copy.
type key struct{ step, from, to int }

// slot is where a letter arrives, or is waited for.
type slot struct {
	body []byte
	here bool
	wait chan struct{}
}

// sending is a letter that was sent, kept in case its receiver's task moves.
type sending struct {
	key  key
	head []byte
	body []byte
	to   int // the rank it was sent to
}

func (s *sending) size() int { return len(s.head) + len(s.body) + 64 }

// call is what a process does in an op.
type call struct {
	signature signature
	run       func(*task) error // one task's part
}

// at returns the op of a number, which is not below the floor.
func (e *Engine) at(number uint64) *op {
	o := e.ops[number]
	if o == nil {
		o = &op{
			number: number, box: make(map[key]*slot), runs: make(map[int]bool),
			low: e.finished, view: uint32(e.view), witness: -1,
		}
		o.ctx, o.cancel = context.WithCancel(e.ctx)
		e.ops[number] = o
		if e.err != nil {
			o.end(e.err)
		}
	}
	return o
}

// slot returns where a letter is or will be.
func (o *op) slot(k key) *slot {
	s := o.box[k]
	if s == nil {
		s = &slot{}
		o.box[k] = s
	}
	return s
}

// put takes a letter in. Copies are dropped.
func (o *op) put(k key, body []byte) {
	s := o.slot(k)
	if s.here {
		return
	}
	s.body, s.here = body, true
	o.changed.give()
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// end says that nothing more is to be done, because of an error or because all
// have finished.
func (o *op) end(err error) {
	if o.err == nil {
		o.err = err
		o.cancel()
		o.changed.give()
	}
}

// task is one task's part in a call, as its algorithm sees it. It does not know
// who owns the other tasks, nor whether this is the first time that it is done.
type task struct {
	e   *Engine
	op  *op
	ctx context.Context
	id  int
	n   int // how many tasks there are
}

// own reports whether it is this process's own, rather than taken over.
func (t *task) own() bool { return t.id == t.e.config.Rank }

// send sends a letter to a task. The body is kept and must not be changed.
func (t *task) send(to, step int, body []byte) error {
	e, o := t.e, t.op
	k := key{step, t.id, to}
	e.mu.Lock()
	if o.err != nil {
		defer e.mu.Unlock()
		return o.err
	}
	h := head{
		what: letter, signature: o.call.signature, number: o.number,
		from: t.id, to: to, step: step, view: uint32(e.view), low: o.low, floor: e.floor,
	}
	s := &sending{k, h.bytes(), body, e.owners[to]}
	switch o.call.signature.strength {
	case runThrough:
		o.sent = append(o.sent, s)
		e.kept += s.size()
	case corrected:
		s.to = to // whoever is dead is not stood in for
	}
	if s.to == e.config.Rank {
		o.put(k, slices.Clone(body))
		e.mu.Unlock()
		return nil
	}
	rank := s.to
	e.mu.Unlock()
	if err := e.config.Link.Send(t.ctx, rank, s.head, body); err != nil && t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	// Whoever is not there any more is replaced by the next view, and its
	// successor gets the letter then.
	return nil
}

// receive waits for a letter. Its body is the task's alone, until it sends it on.
func (t *task) receive(from, step int) ([]byte, error) {
	e, o := t.e, t.op
	e.mu.Lock()
	s := o.slot(key{step, from, t.id})
	for !s.here {
		if o.err != nil {
			defer e.mu.Unlock()
			return nil, o.err
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
			return nil, t.ctx.Err()
		}
		e.mu.Lock()
	}
	body := s.body
	s.body = nil // the slot stays, so that a copy is known
	e.mu.Unlock()
	return body, nil
}
