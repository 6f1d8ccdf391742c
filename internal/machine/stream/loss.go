package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A loss: segments that no member keeps any more cannot be pulled. A member gives them
// up, tells its program, and continues behind them.

// unavailable reports whether a hole must be given up, and up to where: other members
// no longer keep it, and the tree does not bring it either. The parent's reply proves
// that: connections keep order, so it is behind all that the parent had sent.
func (m *Member) unavailable(now protocol.Time, f *flow) (to uint64, unavailable bool) {
	p := &f.pull
	switch {
	case m.frozen:
		return m.unavailableBeforeCut(now, f)
	case p.trimmedReplies == 0 || p.trimmedTo <= f.next:
		return 0, false
	}
	treeIsDone := slices.Contains(p.trimmedBy, f.parent) || !m.treeMayBeSlow(now, f, lossTimeout)
	return p.trimmedTo, p.tries >= maxTries && treeIsDone
}

// unavailableBeforeCut is unavailable for a frozen member. What a cut needs is given up only
// if all members have trimmed it, or if some have and the others have not answered for so
// long that they will be suspected, or if none has answered for longer. So a view waits for
// what can be had, and for nothing else. What is behind the cut belongs to the next view.
//
// While repairs arrive that the cuts of any streams need, the others are not silent: a full queue
// drops repairs, and those of many streams share it. What the cuts need is finite, so this ends.
func (m *Member) unavailableBeforeCut(now protocol.Time, f *flow) (to uint64, unavailable bool) {
	p := &f.pull
	to, wait := f.cut, lossTimeout
	if p.trimmedReplies > 0 && p.trimmedTo > f.next {
		to, wait = min(p.trimmedTo, f.cut), flushTimeout
	}
	others := m.roster.size() - 1
	asked := p.tries >= maxTries+others*4/3 && now >= max(p.asked, m.repairedAt)+wait // nextSource has reached all by then
	return to, f.next < f.cut && (len(p.trimmedBy) >= others || asked)
}

// handleTrimmed records that a peer no longer keeps what was requested. A process that
// joins with the next view never had it, so it says nothing about the others.
func (m *Member) handleTrimmed(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	p := &f.pull
	if f == m.own.flow {
		m.handleLoss(from)
		return
	}
	if fr.first <= f.next || p.due == protocol.Never || !m.roster.has(from) {
		return
	}
	if p.trimmedTo <= f.next {
		// What was trimmed then is here now: those replies do not concern this hole.
		p.trimmedReplies, p.trimmedBy = 0, nil
	}
	if p.trimmedReplies == 0 || fr.first < p.trimmedTo {
		p.trimmedTo, p.messages = fr.first, fr.messages
	}
	repeated := slices.Contains(p.trimmedBy, from)
	if !repeated {
		p.trimmedBy = append(p.trimmedBy, from)
	}
	p.trimmedReplies++
	if m.frozen && !repeated || !m.frozen && p.trimmedReplies <= maxTries {
		p.due = now // request from another member
		m.schedule(f, now)
	}
}

// giveUp continues after a hole that cannot be filled. The program gets the number of lost
// messages in stream order.
func (m *Member) giveUp(now protocol.Time, f *flow, to uint64) {
	m.stats.Lost += to - f.next
	f.store.skip(f.next, to)
	if f.lost == 0 {
		f.lost = f.next + 1
	}
	for number, seg := range f.ahead {
		if number < to {
			delete(f.ahead, number)
			f.aheadBytes -= seg.size()
		}
	}
	f.next, f.wanted = to, max(f.wanted, to)
	f.count.end, f.count.endMessages = to, 0
	if to == f.pull.trimmedTo {
		f.count.endMessages = f.pull.messages
	}
	if !m.frozen {
		m.deliver(f, to)
	}
	m.advance(f)
	m.scheduleCorrection(now, f)
	m.armTailProbe(now, f)
	f.pull = pull{due: now, sources: f.pull.sources[:0]}
}

// Decline answers a request for segments on behalf of a process that has lost all that it
// kept. end is the number up to which it speaks of a root's stream. Decline returns false if
// the frame is no such request.
func Decline(b []byte, end func(root protocol.Rank, incarnation uint64) uint64) (answer []byte, ok bool) {
	fr, err := parse(b)
	if err != nil || fr.kind != request {
		return nil, false
	}
	a := frame{kind: trimmed, root: fr.root, incarnation: fr.incarnation, first: end(fr.root, fr.incarnation)}
	return a.append(nil), a.first > fr.first
}
