package engine

// A task that is run again with another input than it had sends other messages than before.
// Some processes then have the old ones and some the new ones, and their results differ
// silently. So a receiver remembers a digest of each message, and compares the duplicates
// that a task's new owner sends.

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
)

// A digest reads all of a message up to digestBytes, and of a longer one as much in blocks
// that are evenly spread: inputs that were mixed up differ in more than a few places, and
// reading everything would cost as much as a copy.
const (
	digestBytes = 4 << 10
	digestBlock = 128
)

// digestOf returns a digest of a message. Digests of one seed are comparable.
func digestOf(seed maphash.Seed, b []byte) uint64 {
	if len(b) <= digestBytes {
		return maphash.Bytes(seed, b)
	}
	const blocks = digestBytes / digestBlock
	h, last := uint64(len(b)), len(b)-digestBlock
	for i := range blocks {
		at := last / (blocks - 1) * i
		if i == blocks-1 {
			at = last
		}
		h = h*31 + maphash.Bytes(seed, b[at:at+digestBlock])
	}
	return h
}

// digest returns the digest of a message in a call. A call that is held is worth reading
// all of the message: the work between calls is run again, too, and is harder to repeat
// exactly than an input is.
func (e *Engine) digest(o *callState, s Signature, b []byte) uint64 {
	switch {
	case !s.repeatable():
		return 0
	case o.fullDigests:
		return maphash.Bytes(e.digestSeed, b)
	}
	return digestOf(e.digestSeed, b)
}

// put delivers a message, and ends the communicator if it repeats one that was different.
func (e *Engine) put(o *callState, k envelope, s Signature, p Payload) {
	if !o.put(k, p, e.digest(o, s, p.Bytes)) {
		return
	}
	e.diverge(&DivergedError{
		Call: o.number, What: s.String(), View: e.peers.view,
		Task: k.from, Owner: e.peers.owner(k.from), Rank: e.config.Rank,
	})
}

// diverge ends all calls, present and future, here and on the other processes.
func (e *Engine) diverge(err *DivergedError) {
	if e.divergence != nil {
		return
	}
	e.divergence = err
	for _, o := range e.calls.byNumber {
		o.end(err)
	}
	e.log.advanced.Notify()
	notice := abortNotice{call: err.Call, lowWater: e.log.lowWater, err: err}
	head, body := notice.bytes()
	e.sender.enqueue(outMsg{everyOther, head, body})
}

// handleDivergence handles that another process has found a divergence. This one passes
// it on once, because the other may have died before it has told all.
func (e *Engine) handleDivergence(from int, h *header, body []byte) error {
	notice, err := h.abortNotice(from, body)
	if err != nil {
		return err
	}
	found, ok := notice.err.(*DivergedError)
	if !ok {
		return fmt.Errorf("%w: rank %d tells of a divergence without one", ErrMessage, from)
	}
	e.diverge(found)
	return nil
}

// Settle waits until the parts of tasks that this process has taken over are done in all calls,
// and their messages sent.
func (e *Engine) Settle(ctx context.Context) error {
	if err := e.awaitFinished(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	nested := slices.Clone(e.comms.nested)
	e.mu.Unlock()
	for _, n := range nested {
		if err := n.Settle(ctx); err != nil {
			return err
		}
	}
	return e.Flush(ctx)
}

// Divergence returns the error of the communicator or of one derived from it, or nil.
// After all processes have called [Engine.Settle] and have received what was sent, it is final.
func (e *Engine) Divergence() *DivergedError {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.divergence
	for _, n := range e.comms.nested {
		if err == nil {
			err = n.Divergence()
		}
	}
	return err
}
