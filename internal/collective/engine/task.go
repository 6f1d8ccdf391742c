package engine

import (
	"context"
	"slices"
)

// Task is one task's part in a call, as an algorithm sees it. An algorithm does not
// know which processes own the other tasks, nor whether the part is run again.
type Task struct {
	ID int
	N  int // number of tasks

	team   []int // the tasks that ID and N count; nil: all
	level  level
	engine *Engine
	call   *callState
	ctx    context.Context
}

// Own reports whether the task is this process's own, not taken over.
func (t *Task) Own() bool { return t.number(t.ID) == t.engine.config.Rank }

// Rank returns the rank of the process that runs the task.
func (t *Task) Rank() int { return t.engine.config.Rank }

// Context returns the context of the call.
func (t *Task) Context() context.Context { return t.ctx }

// Call returns the call's number.
func (t *Task) Call() uint64 { return t.call.number }

// Signature returns what was called.
func (t *Task) Signature() *Signature { return &t.call.local.signature }

// Thresholds returns the thresholds that select algorithms.
func (t *Task) Thresholds() *Thresholds { return &t.engine.thresholds[t.level] }

// NewBuffer returns a buffer of n bytes, with arbitrary content and one reference.
func (t *Task) NewBuffer(n int) *Buffer { return t.engine.pool.newBuffer(n) }

// UnlessReturned calls set unless this process's call has returned to its caller.
func (t *Task) UnlessReturned(set func()) {
	t.engine.mu.Lock()
	defer t.engine.mu.Unlock()
	if !t.call.returned {
		set()
	}
}

// Send sends a message to a task. The engine keeps body, so it must not change.
func (t *Task) Send(to, step int, body []byte) error {
	return t.SendPayload(to, step, Payload{Bytes: body})
}

// SendPayload sends a message to a task. The payload must not change. The caller still
// releases its own reference.
func (t *Task) SendPayload(to, step int, p Payload) error {
	e, o := t.engine, t.call
	to = t.number(to)
	k := envelope{step, t.number(t.ID), to}
	l := e.entries.take() // its reference is the link's
	e.mu.Lock()
	if o.err != nil {
		defer e.mu.Unlock()
		return o.err
	}
	m := taskMessage{
		signature: o.local.signature, call: o.number, envelope: k,
		view: uint32(e.peers.view), finishedByAll: o.finishedByAll, lowWater: e.log.lowWater,
	}
	l.envelope, l.payload, l.to = k, p.Retain(), e.peers.owner(to)
	m.append(l.header[:0])
	switch o.local.signature.Mode {
	case RunThrough:
		l.refs.Add(1)
		o.log = append(o.log, l)
		e.log.bytes += l.size()
	case Corrected:
		l.to = to // tasks of failed processes are not taken over
	}
	if l.to == e.config.Rank {
		e.put(o, k, m.signature, Payload{Bytes: slices.Clone(p.Bytes)})
		e.mu.Unlock()
		l.Release()
		return nil
	}
	rank := l.to
	e.mu.Unlock()
	// If the receiver has failed, the next view assigns the task to another process,
	// to which the message is replayed.
	if err := e.transmit(t.ctx, rank, l); err != nil && t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	return nil
}

// transmit passes a message to the link, which uses it until it has arrived.
func (e *Engine) transmit(ctx context.Context, rank int, l *logEntry) error {
	if e.zeroCopy == nil { // it does not say when that is, so the reference stays
		return e.config.Link.Send(ctx, rank, l.header[:], l.payload.Bytes)
	}
	err := e.zeroCopy.SendOwned(ctx, rank, l.header[:], l.payload.Bytes, l.release)
	if err != nil {
		l.Release()
	}
	return err
}

// Receive waits for a message. Its body belongs to the task, until the task sends it on.
func (t *Task) Receive(from, step int) ([]byte, error) {
	p, err := t.ReceivePayload(from, step)
	return p.Bytes, err
}

// ReceivePayload waits for a message. A task that releases the payload after use saves
// a later message an allocation.
func (t *Task) ReceivePayload(from, step int) (Payload, error) {
	e, o := t.engine, t.call
	e.mu.Lock()
	from = t.number(from)
	k := envelope{step, from, t.number(t.ID)}
	s := o.mailbox.slot(k)
	if !s.here && o.err == nil {
		e.look(s, e.peers.owner(from))
	}
	for !s.here {
		if o.err != nil {
			defer e.mu.Unlock()
			return Payload{}, o.err
		}
		if !s.awaited {
			s.awaited = true
			e.query(o, k)
		}
		wake := s.sleep()
		e.mu.Unlock()
		select {
		case <-wake:
		case <-t.ctx.Done():
			return Payload{}, t.ctx.Err()
		}
		e.mu.Lock()
	}
	p := s.payload
	s.payload = Payload{} // the slot stays, so that a duplicate is recognized
	e.mu.Unlock()
	return p, nil
}
