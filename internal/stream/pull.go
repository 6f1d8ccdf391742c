package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// asking is a hole being mended: whom to ask, and when.
type pull struct {
	sources        []protocol.Rank // who is known to have something, latest last
	due            protocol.Time
	tries          int
	nextSeen       uint64 // the first segment missing when last looked at
	requestedTo    uint64 // what was asked for last, everything before
	requestedFrom  protocol.Rank
	reportDue      bool   // who was asked may be waiting for us, and is to be told how far we are
	trimmedTo      uint64 // the first segment anybody still keeps, as far as told
	trimmedReplies int    // how often that was told
	trimmedBy      []protocol.Rank
}

// How holes are asked for.
const (
	maxSources      = 4
	maxTries        = 12 // before a hole that others no longer keep is given up
	maxTriesUnknown = 60 // before one that nobody seems to have is left alone

	treeCheckInterval = 10 * millisecond // how often a slow tree is looked at
	treeTimeout       = 2 * maxDelay     // for so long a slow tree is waited for before asking
	lossTimeout       = 50 * maxDelay    // and for so long before giving up what nobody keeps
)

// ask notes that a peer has more than is here, and asks before long. The tree's
// copy may still be under way, so it waits as long as correction does.
func (m *Member) schedulePull(now protocol.Time, f *flow, from protocol.Rank) {
	p := &f.pull
	if i := slices.Index(p.sources, from); i >= 0 {
		p.sources = slices.Delete(p.sources, i, i+1)
	}
	p.sources = append(p.sources, from)
	if len(p.sources) > maxSources {
		p.sources = p.sources[1:]
	}
	if p.due == protocol.Never && (f.next < f.cut || !m.inboxFull()) {
		p.nextSeen = f.next
		p.due = now + m.delay.current
		m.schedule(f, p.due)
	}
}

// request asks for what is missing, each time somebody else.
func (m *Member) requestMissing(now protocol.Time, f *flow) {
	p := &f.pull
	p.due = protocol.Never
	if f.next >= f.wanted {
		m.reportProgress(f)
		*p = pull{due: protocol.Never, sources: p.sources[:0]}
		return
	}
	if f.next >= f.cut && m.inboxFull() {
		return // Deliver makes room, and resumes
	}
	if p.tries == 0 && f.next > p.nextSeen {
		// The tree is only behind what others offer: a hole would have stopped
		// it. Whoever asked now would get everything twice.
		m.reportProgress(f)
		p.nextSeen, p.due = f.next, now+m.delay.current
		m.schedule(f, p.due)
		return
	}
	if p.tries == 0 && m.treeMayBeSlow(now, f, treeTimeout) {
		p.due = now + treeCheckInterval
		m.schedule(f, p.due)
		return
	}
	if m.frozen && f.next > p.nextSeen { // somebody has answered: begin anew
		p.nextSeen, p.tries, p.trimmedReplies, p.trimmedBy = f.next, 0, 0, nil
	}
	if to, hopeless := m.unavailable(now, f); hopeless {
		m.giveUp(now, f, to)
		return
	}
	if p.tries >= maxTriesUnknown && !m.frozen { // all wait for who is frozen
		p.tries = 0 // nobody alive has it; the next offer makes it worth asking again
		if p.trimmedReplies > 0 && p.trimmedTo > f.next {
			p.due = f.fedAt + lossTimeout // but it can be given up once the tree has had its time
			m.schedule(f, p.due)
		}
		return
	}
	end := min(f.wanted, f.next+maxRequested)
	if len(f.ahead) > 0 {
		end = min(end, f.firstAhead())
	}
	m.stats.Requests++
	p.requestedFrom, p.reportDue, p.requestedTo = m.nextSource(p), true, end
	m.queueFrame(p.requestedFrom, f, frame{kind: request, first: f.next, last: end})
	p.tries++
	longest := 4 * maxDelay
	if m.frozen {
		longest = maxDelay
	}
	p.due = now + min(4*m.delay.current<<min(p.tries, 6), longest)
	m.schedule(f, p.due)
}

// report tells who was asked last how far this member has come since: it may be
// waiting (see pressure.go), and hear of it by no other way.
func (m *Member) reportProgress(f *flow) {
	if p := &f.pull; p.reportDue {
		p.reportDue = f.next < f.wanted
		m.offer(p.requestedFrom, f, undirected)
	}
}

// feeds reports whether the tree may only be slow: it has brought something
// within some time, nothing has come past a hole, and the parent is not down. A queue
// further up is full then, and whoever asked would fill others, too.
func (m *Member) treeMayBeSlow(now protocol.Time, f *flow, within protocol.Time) bool {
	return f.fedAt > 0 && now < f.fedAt+within && len(f.ahead) == 0 && !m.frozen && !m.down[f.parent]
}

// source chooses whom to ask: who offered last, then the others, then ring
// neighbors further and further out, and in between, every fourth time, those who
// offered again.
func (m *Member) nextSource(p *pull) protocol.Rank {
	if n := len(p.sources); n > 0 && (p.tries < n || p.tries%4 == 3) {
		return p.sources[n-1-p.tries%n] // also again: a frame may have been lost
	}
	n := len(p.sources)
	out := (p.tries - p.tries/4) - (n - n/4) // neighbors asked so far
	return m.roster.neighbor(1+(out/2)%max(m.roster.size()/2, 1), out%2 == 1)
}

// askOn asks for the next piece as soon as the last one asked for is here, unless
// the tree has gone on meanwhile: then that brings the rest.
func (m *Member) requestMore(now protocol.Time, f *flow) {
	p := &f.pull
	if p.due == protocol.Never || f.next < p.requestedTo {
		return
	}
	p.tries, p.trimmedReplies, p.trimmedBy, p.nextSeen = 0, 0, nil, f.next
	if f.fedAt > 0 && now-f.fedAt < m.delay.current {
		p.due = now + m.delay.current
		m.schedule(f, p.due)
		return
	}
	m.requestMissing(now, f)
}

// answer sends what a peer asks for, or says what is still kept.
func (m *Member) handleRequest(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if firstKept := f.store.firstKept(fr.first); firstKept > fr.first {
		m.queueFrame(from, f, frame{kind: trimmed, first: firstKept})
		return
	}
	if f.store.nearlyTrimmed(fr.first, m.config.KeepBytes) {
		m.awaitSlowReceiver(now, from, f.root, fr.first)
	}
	for number := fr.first; number < min(fr.last, fr.first+maxRequested); number++ {
		seg, ok := f.get(number)
		if !ok {
			break
		}
		m.stats.Repaired++
		m.queueSegment(from, f, repair, &seg)
	}
}
