package stream

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Invariant returns what is wrong with the accounts of a member: whatever happens, they agree
// with what the member has.
func (m *Member) Invariant() error {
	for root, f := range m.flows {
		if err := m.invariantOf(f); err != nil || f.root != root {
			return fmt.Errorf("stream of rank %d, known as that of %d: %w", f.root, root, err)
		}
	}
	waiting, bytes := 0, 0
	count := func(q *messageQueue) {
		for i := range q.Len() {
			waiting++
			bytes += q.At(i).cost()
		}
	}
	count(&m.inbox.main)
	for _, s := range m.inbox.topics.byID {
		count(&s.queue)
	}
	if waiting != m.inbox.waiting || bytes != m.inbox.bytes {
		return fmt.Errorf("%d messages of %d bytes wait for the program: the inbox counts %d and %d", waiting, bytes,
			m.inbox.waiting, m.inbox.bytes)
	}
	own, unsent := 0, uint64(0)
	for i := range m.own.waiting.Len() {
		s := m.own.waiting.At(i)
		own += s.size()
		if s.remaining == 0 {
			unsent++
		}
	}
	if own != m.own.bytes || unsent != m.own.unsent {
		return fmt.Errorf("%d messages of %d bytes wait to be sent, counted are %d of %d", unsent, own, m.own.unsent,
			m.own.bytes)
	}
	for _, f := range m.scheduled {
		if m.flows[f.root] != f {
			return fmt.Errorf("a stream of rank %d that has ended is scheduled", f.root)
		}
	}
	return cmp.Or(m.invariantOfWindow(), m.invariantOfTimers(), m.invariantOfMemory())
}

// invariantOfWindow judges what is in flight, and what is held for members that do not answer.
func (m *Member) invariantOfWindow() error {
	f := m.own.flow
	last, s := f.credit.last, &f.store
	if inFlight, held := s.weightOf(last.live, f.next), s.weightOf(last.all, last.live); inFlight != m.own.inFlight ||
		held != m.own.held {
		return fmt.Errorf("%d bytes are in flight and %d held, counted are %d and %d", inFlight, held, m.own.inFlight,
			m.own.held)
	}
	if w := m.own.window; w < min(minWindow, m.config.KeepBytes) || w > max(m.config.KeepBytes, initialWindow) {
		return fmt.Errorf("a window of %d", w)
	}
	return nil
}

// invariantOfTimers judges whether the member's deadline is no later than what waits for it.
func (m *Member) invariantOfTimers() error {
	due := min(m.own.pollDue, m.own.creditDue, m.retryDue)
	for _, b := range m.backlogs {
		if !b.expired {
			due = min(due, b.since+stallTimeout)
		}
	}
	if m.own.burst.batching {
		due = min(due, m.own.burst.emitted+maxBatchDelay)
	}
	if due < m.due {
		return fmt.Errorf("due at %d, and the member at %d", due, m.due)
	}
	return nil
}

// invariantOf judges what the member has of one stream.
func (m *Member) invariantOf(f *flow) error {
	s := &f.store
	bytes, weight, next := 0, 0, s.low
	gaps := s.gaps
	for i := range s.segments.Len() {
		bytes += s.segments.At(i).size()
		weight += s.segments.At(i).weight()
		if seg, ok := s.get(next); !ok || seg.size() != s.segments.At(i).size() {
			return fmt.Errorf("segment %d is not found", next)
		}
		next++
		if len(gaps) > 0 && gaps[0].from == next {
			next, gaps = gaps[0].to, gaps[1:]
		}
	}
	ahead := 0
	for number, seg := range f.ahead {
		ahead += seg.size()
		if number <= f.next {
			return fmt.Errorf("segment %d is ahead of %d", number, f.next)
		}
	}
	c := &f.credit
	switch {
	case bytes != s.bytes || weight != s.weight || ahead != f.aheadBytes:
		return fmt.Errorf("%d bytes are kept, of weight %d, and %d ahead: counted are %d, %d and %d", bytes, weight, ahead,
			s.bytes, s.weight, f.aheadBytes)
	case next != f.next || len(gaps) > 0:
		return fmt.Errorf("segments up to %d are kept, and the next is %d, with gaps %v", next, f.next, gaps)
	case f.delivered > f.next || f.delivered < f.next && !m.frozen:
		return fmt.Errorf("segments up to %d of %d are delivered, frozen %t", f.delivered, f.next, m.frozen)
	case c.last.all > c.last.live || f == m.own.flow && c.last.live > f.next:
		return fmt.Errorf("granted %v of %d", c.last, f.next)
	case f.scheduled != slices.Contains(m.scheduled, f):
		return fmt.Errorf("scheduled: %t, says the stream %t", !f.scheduled, f.scheduled)
	case f.correction.running && f.correction.due == protocol.Never:
		return fmt.Errorf("a correction that nothing wakes")
	}
	if now := (flow{root: f.root}); m.layTree(&now) != nil || !reflect.DeepEqual(f.links, now.links) {
		return fmt.Errorf("the neighbors are %v, and should be %v", f.links, now.links)
	}
	if due := min(f.correction.due, f.pull.due, f.tailProbe.due, f.foster.due); due < m.due || due != protocol.Never &&
		!f.scheduled {
		return fmt.Errorf("due at %d, and the member at %d", due, m.due)
	}
	return nil
}

// invariantOfMemory judges what the member keeps for others, or to use again.
func (m *Member) invariantOfMemory() error {
	free := 0
	for _, memory := range m.spare.free {
		free += cap(memory)
	}
	if free != m.spare.bytes || free > maxSpare {
		return fmt.Errorf("%d bytes are free, counted %d", free, m.spare.bytes)
	}
	for peer, b := range m.backlogs {
		bytes := 0
		for _, s := range b.sends {
			bytes += len(s.encoded) + len(s.body) + segmentCost
			if s.to != peer {
				return fmt.Errorf("a segment for rank %d waits for %d", s.to, peer)
			}
		}
		if bytes != b.bytes || b.expired && len(b.sends) > 0 {
			return fmt.Errorf("%d bytes wait for rank %d, counted %d, expired %t", bytes, peer, b.bytes, b.expired)
		}
	}
	return nil
}
