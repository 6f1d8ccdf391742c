package engine

// A task that is run again with another input than it had sends other messages than before.
// Some processes then have the old ones and some the new ones, and their results differ
// silently. So a receiver remembers a digest of each message, and compares the duplicates
// that a task's new owner sends.

import (
	"encoding/binary"
	"fmt"
)

// digestWords is how many words of a message a digest reads. Up to that length it reads
// all of them; of a longer message, as many, evenly spread: inputs that were mixed up
// differ in more than a few places, and reading everything would cost as much as a copy.
const digestWords = 256

// digestOf returns a digest of a message: FNV-1a over words instead of bytes.
func digestOf(b []byte) uint64 {
	const word, prime = 8, 0x100000001b3
	h := 0xcbf29ce484222325 ^ uint64(len(b))
	stride := max(word, len(b)/digestWords&^(word-1))
	for i := 0; i+word <= len(b); i += stride {
		h = (h ^ binary.LittleEndian.Uint64(b[i:])) * prime
		h ^= h >> 32
	}
	for _, tail := range b[len(b)&^(word-1):] {
		h = (h ^ uint64(tail)) * prime
	}
	return h
}

// put delivers a message, and ends the communicator if it repeats one that was different.
func (e *Engine) put(o *callState, k envelope, s Signature, p Payload) {
	if !o.put(k, s, p) {
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
