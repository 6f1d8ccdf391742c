package collective

import (
	"context"
	"time"
)

// stepPatience is how long the message of one process that may be dead is waited
// for. In a group that may be f times as long, so who waits for more than a group
// waits longer.
const receiveTimeout = 2 * time.Second

func (c *correction) timeout(step int) time.Duration {
	switch step {
	case withinGroup:
		return receiveTimeout
	case upTree:
		return time.Duration(c.f+1) * receiveTimeout
	}
	return time.Duration(2*c.f+2) * receiveTimeout
}

// Lost says that nobody is there at a rank, as far as the link knows: what has
// not come from it will not. Found takes that back.
func (e *Engine) PeerDown(rank int) { e.setPeerDown(rank, true) }

// Found says that somebody is there at a rank.
func (e *Engine) PeerUp(rank int) { e.setPeerDown(rank, false) }

func (e *Engine) setPeerDown(rank int, lost bool) {
	if rank < 0 || rank >= e.config.Size {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peer(rank).down = lost
	for _, o := range e.calls {
		o.changed.Notify()
	}
	for _, w := range e.nested {
		if r, ok := w.rankOfWorld(e.worldRank(rank)); ok {
			w.setPeerDown(r, lost)
		}
	}
}

// receiveLive waits for a letter that comes only if its sender lives.
func (c *correction) receiveLive(vrank, step int) (body []byte, ok bool, err error) {
	body, err = c.task.receiveAny([]int{c.id(vrank)}, []int{step}, c.timeout(step))
	return body, body != nil, err
}

// receiveAny waits for the first of several letters, which are not empty. It
// returns nil if none will come.
func (t *task) receiveAny(froms, steps []int, timeout time.Duration) ([]byte, error) {
	e, o := t.e, t.call
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer t.stopWaiting(froms, steps)
	for o.err == nil {
		lost := true
		for i, from := range froms {
			s := o.slot(envelope{steps[i], from, t.id})
			if s.here {
				return s.payload.bytes, nil
			}
			if s.wait == nil {
				s.wait = make(chan struct{}) // it is known that it is waited for
			}
			lost = lost && e.peer(from).down
		}
		if lost || ctx.Err() != nil {
			return nil, t.ctx.Err()
		}
		changed := o.changed.Wait()
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
		t.call.slot(envelope{steps[i], from, t.id}).wait = nil
	}
}
