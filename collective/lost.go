package collective

import (
	"context"
	"time"
)

// stepPatience is how long the message of one process that may be dead is waited
// for. In a group that may be f times as long, so who waits for more than a group
// waits longer.
const stepPatience = 2 * time.Second

func (c *correction) patience(step int) time.Duration {
	switch step {
	case withinGroup:
		return stepPatience
	case upTree:
		return time.Duration(c.f+1) * stepPatience
	}
	return time.Duration(2*c.f+2) * stepPatience
}

// Lost says that nobody is there at a rank, as far as the link knows: what has
// not come from it will not. Found takes that back.
func (e *Engine) Lost(rank int) { e.setLost(rank, true) }

// Found says that somebody is there at a rank.
func (e *Engine) Found(rank int) { e.setLost(rank, false) }

func (e *Engine) setLost(rank int, lost bool) {
	if rank < 0 || rank >= e.config.Size {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(rank).lost = lost
	for _, o := range e.ops {
		o.changed.give()
	}
	for _, w := range e.inner {
		if r, ok := w.rankOf(e.firstOf(rank)); ok {
			w.setLost(r, lost)
		}
	}
}

// receiveLive waits for a letter that comes only if its sender lives.
func (c *correction) receiveLive(place, step int) (body []byte, ok bool, err error) {
	body, err = c.task.receiveAny([]int{c.id(place)}, []int{step}, c.patience(step))
	return body, body != nil, err
}

// receiveAny waits for the first of several letters, which are not empty. It
// returns nil if none will come.
func (t *task) receiveAny(froms, steps []int, patience time.Duration) ([]byte, error) {
	e, o := t.e, t.op
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer t.stopWaiting(froms, steps)
	for o.err == nil {
		lost := true
		for i, from := range froms {
			s := o.slot(key{steps[i], from, t.id})
			if s.here {
				return s.page.bytes, nil
			}
			if s.wait == nil {
				s.wait = make(chan struct{}) // it is known that it is waited for
			}
			lost = lost && e.of(from).lost
		}
		if lost || ctx.Err() != nil {
			return nil, t.ctx.Err()
		}
		changed := o.changed.wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
	}
	return nil, o.err
}

// stopWaiting takes back that letters are waited for, unless the call is late: then
// it is to be seen which.
func (t *task) stopWaiting(froms, steps []int) {
	if t.ctx.Err() != nil {
		return
	}
	for i, from := range froms {
		t.op.slot(key{steps[i], from, t.id}).wait = nil
	}
}
