package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// pull is the state of requesting the segments of a hole: from which members, and when.
// A request is a negative acknowledgment (NACK; IWANT of Plumtree), and a repair is the
// retransmission that answers it.
type pull struct {
	sources        []protocol.Rank // members that probably have what is missing, latest last
	due            protocol.Time
	tries          int
	nextSeen       uint64 // the first missing segment at the last look
	requestedTo    uint64 // the number after the last segment requested
	requestedFrom  protocol.Rank
	asked          protocol.Time // when the first of the requests was sent that were not answered; 0: all were
	answered       int           // requests so far that brought everything
	trimmedTo      uint64        // the first segment that any member still keeps, by the replies so far
	messages       uint32        // that begin before it, if that is known
	trimmedReplies int           // how many replies said so
	trimmedBy      []protocol.Rank
}

// repairs is what this member has seen of repairs, in all streams.
type repairs struct {
	repairTook protocol.Time // how long it takes until all that was requested is here
	repairedAt protocol.Time // when the last one arrived that a cut needs
}

// Limits of a pull.
const (
	maxSources         = 4
	maxTries           = 12                 // requests before a hole that others have trimmed is given up
	maxUnanswered      = 60                 // requests before a pull pauses because no member has answered
	maxRequestInterval = 400 * millisecond  // time between two requests, at most
	lossTimeout        = 5000 * millisecond // wait for a slow tree before giving up what others have trimmed
	flushTimeout       = 3000 * millisecond // wait of a frozen member for answers, before giving up what some have trimmed
)

// schedulePull schedules a request, because a peer has something that is not here. The
// tree's copy may still be on its way, so the request waits as long as correction does.
// Only an offer says that the peer has everything before it. A peer that has sent a later
// segment may have the same hole, and is asked only if no member has made an offer.
func (m *Member) schedulePull(now protocol.Time, f *flow, from protocol.Rank, offered bool) {
	p := &f.pull
	if offered || len(p.sources) == 0 {
		p.addSource(from)
	}
	if p.due == protocol.Never {
		p.nextSeen = f.next
		p.due = now + m.skew.lead()
		m.schedule(f, p.due)
	}
}

// addSource records that a member may have what is missing.
func (p *pull) addSource(from protocol.Rank) {
	if i := slices.Index(p.sources, from); i >= 0 {
		p.sources = slices.Delete(p.sources, i, i+1)
	}
	p.sources = append(p.sources, from)
	if len(p.sources) > maxSources {
		p.sources = p.sources[1:]
	}
}

// requestMissing requests missing segments, each time from another member.
func (m *Member) requestMissing(now protocol.Time, f *flow) {
	p := &f.pull
	p.due = protocol.Never
	if f.next >= f.wanted {
		*p = pull{due: protocol.Never, sources: p.sources[:0]}
		return
	}
	if m.waitsForInbox(f) {
		return // Deliver makes room and continues
	}
	if p.tries == 0 && f.next > p.nextSeen {
		// The tree is only behind what others offer: a hole would have stopped it. A
		// request now would bring every segment twice.
		p.nextSeen, p.due = f.next, now+m.skew.lead()
		return
	}
	if p.tries == 0 && m.treeMayBeSlow(now, f, m.skew.patience()) {
		p.due = now + m.skew.lead()
		m.schedule(f, p.due) // not only tick gets here
		return
	}
	if f.next > p.nextSeen { // a repair has arrived, maybe not all that was requested: start over
		p.nextSeen, p.tries, p.trimmedReplies, p.trimmedBy = f.next, 0, 0, nil
	}
	if to, unavailable := m.unavailable(now, f); unavailable {
		m.giveUp(now, f, to)
		return
	}
	if p.tries >= maxUnanswered && !m.frozen { // a frozen member keeps asking: all wait for it
		p.tries = 0 // no live member has it; the next offer starts over
		if p.trimmedReplies > 0 && p.trimmedTo > f.next {
			p.due = f.fedAt + lossTimeout // but it can be given up after the tree's timeout
		}
		return
	}
	m.sendRequest(now, f)
}

// sendRequest sends one request, and schedules the next with exponential backoff. A
// frozen member backs off less, since all wait for it, but to twice the time that repairs
// take: under overload each request that is too early brings every segment once more.
func (m *Member) sendRequest(now protocol.Time, f *flow) {
	p := &f.pull
	end := min(f.wanted, f.next+m.requestLength(p))
	if len(f.ahead) > 0 {
		end = min(end, f.firstAhead())
	}
	m.stats.Requests++
	p.requestedFrom, p.requestedTo = m.nextSource(f), end
	m.queueFrame(p.requestedFrom, f, frame{kind: request, first: f.next, last: end})
	p.tries++
	if p.asked == 0 {
		p.asked = now
	}
	longest := maxRequestInterval
	if m.frozen {
		longest = max(maxRequestInterval/4, 2*m.repairTook)
	}
	// However long repairs take, a lost request is repeated soon: its wait is part of the
	// next measurement, which would grow without bound.
	first := max(2*m.skew.lead(), min(m.repairTook, maxRequestInterval/4))
	p.due = now + min(first<<min(p.tries-1, 6), longest)
	m.schedule(f, p.due)
}

// requestLength returns for how many segments a request asks. It doubles with each
// request that was answered (slow start, Jacobson 1988): where the tree is only slow, as
// under overload, every requested segment arrives twice. All members wait for a frozen
// one, so it asks for as many as it may.
func (m *Member) requestLength(p *pull) uint64 {
	if m.frozen {
		return maxRequested
	}
	return min(uint64(minRequested)<<min(p.answered, 8), maxRequested)
}

// waitsForInbox reports whether there is no room for what would be requested.
func (m *Member) waitsForInbox(f *flow) bool { return f.next >= f.cut && m.inboxOverflows() }

// treeMayBeSlow reports whether the tree may only be slow: it has brought something
// within some time, nothing has arrived behind a hole, and the parent is not down. A
// queue further up is full then, and requests would fill others too.
func (m *Member) treeMayBeSlow(now protocol.Time, f *flow, within protocol.Time) bool {
	return f.fedAt > 0 && now < f.fedAt+within && len(f.ahead) == 0 && !m.frozen && !m.down[f.parent]
}

// nextSource chooses the member to ask: those that made offers, latest first, then ring
// neighbors further and further out. Every fourth request goes to one that made an
// offer again. Those that cannot be reached are asked as neighbors only. The last one before
// a hole may be given up goes to the parent, whose reply tells that the tree will not bring
// it.
func (m *Member) nextSource(f *flow) protocol.Rank {
	p := &f.pull
	p.sources = slices.DeleteFunc(p.sources, func(r protocol.Rank) bool { return m.down[r] })
	if p.tries == maxTries-1 && m.roster.has(f.parent) {
		return f.parent
	}
	if n := len(p.sources); n > 0 && (p.tries < n || p.tries%4 == 3) {
		return p.sources[n-1-p.tries%n] // also again: a frame may have been lost
	}
	n := len(p.sources)
	out := (p.tries - p.tries/4) - (n - n/4) // neighbors asked so far
	return m.roster.neighbor(1+(out/2)%max(m.roster.size()/2, 1), out%2 == 1)
}

// requestMore requests the next segments as soon as the last ones requested are here.
func (m *Member) requestMore(now protocol.Time, f *flow) {
	p := &f.pull
	if p.due == protocol.Never || f.next < p.requestedTo {
		return
	}
	p.tries, p.trimmedReplies, p.trimmedBy, p.nextSeen = 0, 0, nil, f.next
	p.answered++
	m.learnRepair(now, p)
	m.requestMissing(now, f)
}

// learnRepair takes in that all that was requested is here. A member that was stopped is
// late once, and overloaded ones are late again and again, so the time at most doubles, or
// becomes maxWait.
func (m *Member) learnRepair(now protocol.Time, p *pull) {
	if p.asked > 0 {
		m.repairTook = min(now-p.asked, max(2*m.repairTook, maxWait))
		p.asked = 0
	}
}

// handleRequest sends the segments that a peer requests, or says which are still kept.
func (m *Member) handleRequest(f *flow, from protocol.Rank, fr *frame) {
	// One that has left may wait for this before it knows that. One that joins with a later
	// view, which this member does not know yet, asks for nothing before the present one.
	if m.leftEarlier(from) && fr.first < f.viewStart {
		m.queueFrame(from, f, frame{kind: trimmed, first: f.viewStart})
		return
	}
	if firstKept := f.store.firstKept(fr.first); firstKept > fr.first {
		if m.hasBacklog(from, f) {
			return // the child gets it from there
		}
		m.queueFrame(from, f, frame{kind: trimmed, first: firstKept, messages: f.messagesBefore(firstKept)})
		return
	}
	end := min(fr.last, fr.first+maxRequested, m.shareEndWith(f, from))
	for number := fr.first; number < end; number++ {
		seg, ok := f.get(number)
		if !ok {
			break
		}
		m.stats.Repaired++
		m.queueSegment(from, f, repair, &seg)
	}
}
