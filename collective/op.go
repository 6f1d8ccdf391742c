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
	runs runs // of tasks whose part is under way here
	// low: everybody whose letters have come had finished the calls before, in
	// one view, unless they are of several.
	low      uint64
	view     uint32
	several  bool
	finished bool // this process's own call is over
	err      error
	ctx      ending // ends when nothing more is to be done
	changed  bell
	reminded bool  // it has taken long, and everybody was asked
	pact     *pact // of an Agree or a Shrink
	// Memory for what most calls need, so that it need not be allocated bit by bit.
	store struct {
		call    call
		runs    [1]run
		slots   [4]slot
		letters [4]sending
		sent    [4]*sending
		slot    int // used
		letter  int // used
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
type ending struct {
	context.Context
	done chan struct{}
}

// Done implements [context.Context].
func (e ending) Done() <-chan struct{} { return e.done }

// Err implements [context.Context].
func (e ending) Err() error {
	select {
	case <-e.done:
		return context.Canceled
	default:
		return nil
	}
}

// key is which letter of a call it is. There is at most one of a key: letters are
// determined by the tasks' inputs, so a second one is a copy.
type key struct{ step, from, to int }

// slot is where a letter arrives, or is waited for.
type slot struct {
	page page
	here bool
	wait chan struct{}
}

// sending is a letter that was sent, kept in case its receiver's task moves.
type sending struct {
	key  key
	head [headSize]byte
	page page
	to   int // the rank it was sent to
}

func (s *sending) size() int { return len(s.head) + len(s.page.bytes) + 64 }

// call is what a process does in an op.
type call struct {
	signature signature
	run       func(*task) error // one task's part
	began     time.Time
}

// at returns the op of a number, which is not below the floor.
func (e *Engine) at(number uint64) *op {
	o := e.ops[number]
	if o == nil {
		o = &op{
			number: number, box: make(map[key]*slot), ctx: ending{e.ctx, make(chan struct{})},
			low: e.finished, view: uint32(e.view), witness: -1,
		}
		o.runs, o.sent = o.store.runs[:0], o.store.sent[:0]
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
		if i := o.store.slot; i < len(o.store.slots) {
			s = &o.store.slots[i]
			o.store.slot++
		} else {
			s = &slot{}
		}
		o.box[k] = s
	}
	return s
}

// sending returns room for a letter that is sent.
func (o *op) sending() *sending {
	if i := o.store.letter; i < len(o.store.letters) {
		o.store.letter++
		return &o.store.letters[i]
	}
	return &sending{}
}

// put takes a letter in. Copies are dropped.
func (o *op) put(k key, p page) {
	s := o.slot(k)
	if s.here {
		p.drop()
		return
	}
	s.page, s.here = p, true
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
		close(o.ctx.done)
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
	return t.sendPage(to, step, page{bytes: body})
}

// sendPage sends a letter to a task. What is on the page must not be changed; whoever
// sends it still has to drop it.
func (t *task) sendPage(to, step int, p page) error {
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
	s := o.sending()
	s.key, s.page, s.to = k, p, e.owner(to)
	h.append(s.head[:0])
	switch o.call.signature.strength {
	case runThrough:
		p.hold()
		o.sent = append(o.sent, s)
		e.kept += s.size()
	case corrected:
		s.to = to // whoever is dead is not stood in for
	}
	if s.to == e.config.Rank {
		o.put(k, page{bytes: slices.Clone(p.bytes)})
		e.mu.Unlock()
		return nil
	}
	rank := s.to
	e.mu.Unlock()
	// Whoever is not there any more is replaced by the next view, and its
	// successor gets the letter then.
	if err := e.post(t.ctx, rank, s.head[:], p); err != nil && t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	return nil
}

// post hands a letter to the link, which uses the page until it has arrived.
func (e *Engine) post(ctx context.Context, rank int, head []byte, p page) error {
	if e.lender == nil || p.sheet == nil {
		p.hold() // for ever
		return e.config.Link.Send(ctx, rank, head, p.bytes)
	}
	err := e.lender.Lend(ctx, rank, head, p.hold().bytes, p.sheet.drop)
	if err != nil {
		p.drop()
	}
	return err
}

// receive waits for a letter. Its body is the task's alone, until it sends it on.
func (t *task) receive(from, step int) ([]byte, error) {
	p, err := t.receivePage(from, step)
	return p.bytes, err
}

// receivePage waits for a letter, too. Whoever drops the page afterwards saves the
// next letter an allocation.
func (t *task) receivePage(from, step int) (page, error) {
	e, o := t.e, t.op
	e.mu.Lock()
	s := o.slot(key{step, from, t.id})
	for !s.here {
		if o.err != nil {
			defer e.mu.Unlock()
			return page{}, o.err
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
			return page{}, t.ctx.Err()
		}
		e.mu.Lock()
	}
	p := s.page
	s.page = page{} // the slot stays, so that a copy is known
	e.mu.Unlock()
	return p, nil
}
