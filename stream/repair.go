package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// asking is a hole being mended: whom to ask, and when.
type asking struct {
	sources []protocol.Rank // who is known to have something, latest last
	due     protocol.Time
	tries   int
	seen    uint64 // the first segment missing when last looked at
	upTo    uint64 // what was asked for last, everything before
	asked   protocol.Rank
	owes    bool   // who was asked may be waiting for us, and is to be told how far we are
	gone    uint64 // the first segment anybody still keeps, as far as told
	told    int    // how often that was told
	tellers []protocol.Rank
}

// How holes are asked for.
const (
	maxSources = 4
	maxTries   = 12 // before a hole that others no longer keep is given up
	restAfter  = 60 // before one that nobody seems to have is left alone

	glance = 10 * millisecond // how often a slow tree is looked at
	lately = 2 * maxDelay     // for so long a slow tree is waited for before asking
	ever   = 50 * maxDelay    // and for so long before giving up what nobody keeps
)

// ask notes that a peer has more than is here, and asks before long. The tree's
// copy may still be under way, so it waits as long as correction does.
func (m *Member) ask(now protocol.Time, f *flow, from protocol.Rank) {
	a := &f.asking
	if i := slices.Index(a.sources, from); i >= 0 {
		a.sources = slices.Delete(a.sources, i, i+1)
	}
	a.sources = append(a.sources, from)
	if len(a.sources) > maxSources {
		a.sources = a.sources[1:]
	}
	if a.due == protocol.Never && (f.next < f.cut || !m.inboxFull()) {
		a.seen = f.next
		a.due = now + m.delay.now
		m.schedule(f, a.due)
	}
}

// request asks for what is missing, each time somebody else.
func (m *Member) request(now protocol.Time, f *flow) {
	a := &f.asking
	a.due = protocol.Never
	if f.next >= f.wanted {
		m.report(f)
		*a = asking{due: protocol.Never, sources: a.sources[:0]}
		return
	}
	if f.next >= f.cut && m.inboxFull() {
		return // Deliver makes room, and resumes
	}
	if a.tries == 0 && f.next > a.seen {
		// The tree is only behind what others offer: a hole would have stopped
		// it. Whoever asked now would get everything twice.
		m.report(f)
		a.seen, a.due = f.next, now+m.delay.now
		m.schedule(f, a.due)
		return
	}
	if a.tries == 0 && m.feeds(now, f, lately) {
		a.due = now + glance
		m.schedule(f, a.due)
		return
	}
	if m.frozen && f.next > a.seen { // somebody has answered: begin anew
		a.seen, a.tries, a.told, a.tellers = f.next, 0, 0, nil
	}
	if to, hopeless := m.hopeless(now, f); hopeless {
		m.giveUp(now, f, to)
		return
	}
	if a.tries >= restAfter && !m.frozen { // all wait for who is frozen
		a.tries = 0 // nobody alive has it; the next offer makes it worth asking again
		if a.told > 0 && a.gone > f.next {
			a.due = f.fedAt + ever // but it can be given up once the tree has had its time
			m.schedule(f, a.due)
		}
		return
	}
	end := min(f.wanted, f.next+askAtOnce)
	if len(f.ahead) > 0 {
		end = min(end, f.firstAhead())
	}
	m.stats.Requests++
	a.asked, a.owes, a.upTo = m.source(a), true, end
	m.put(a.asked, f, frame{kind: request, first: f.next, last: end})
	a.tries++
	longest := 4 * maxDelay
	if m.frozen {
		longest = maxDelay
	}
	a.due = now + min(4*m.delay.now<<min(a.tries, 6), longest)
	m.schedule(f, a.due)
}

// hopeless reports whether a hole is to be given up, and up to where: others say
// that they no longer keep it, and the tree does not bring it either. What a cut
// needs is given up only when all say so, or when some do and nobody else has
// answered for a while: so a view waits for what can be had, and for nothing else.
// What is behind the cut belongs to the next view.
func (m *Member) hopeless(now protocol.Time, f *flow) (to uint64, hopeless bool) {
	a := &f.asking
	switch {
	case a.told == 0 || a.gone <= f.next:
		return 0, false
	case !m.frozen:
		return a.gone, a.tries >= maxTries && !m.feeds(now, f, ever)
	}
	others := m.lineup.size() - 1
	asked := a.tries >= maxTries+others*4/3 // see source
	return min(a.gone, f.cut), f.next < f.cut && (len(a.tellers) >= others || asked)
}

// report tells who was asked last how far this member has come since: it may be
// waiting (see pressure.go), and hear of it by no other way.
func (m *Member) report(f *flow) {
	if a := &f.asking; a.owes {
		a.owes = f.next < f.wanted
		m.offer(a.asked, f, news)
	}
}

// feeds reports whether the tree may only be slow: it has brought something
// within some time, nothing has come past a hole, and the parent is not down. A queue
// further up is full then, and whoever asked would fill others, too.
func (m *Member) feeds(now protocol.Time, f *flow, within protocol.Time) bool {
	return f.fedAt > 0 && now < f.fedAt+within && len(f.ahead) == 0 && !m.frozen && !m.down[f.parent]
}

// source chooses whom to ask: who offered last, then the others, then ring
// neighbors further and further out, and in between, every fourth time, those who
// offered again.
func (m *Member) source(a *asking) protocol.Rank {
	if n := len(a.sources); n > 0 && (a.tries < n || a.tries%4 == 3) {
		return a.sources[n-1-a.tries%n] // also again: a frame may have been lost
	}
	n := len(a.sources)
	out := (a.tries - a.tries/4) - (n - n/4) // neighbors asked so far
	return m.lineup.neighbor(1+(out/2)%max(m.lineup.size()/2, 1), out%2 == 1)
}

// askOn asks for the next piece as soon as the last one asked for is here, unless
// the tree has gone on meanwhile: then that brings the rest.
func (m *Member) askOn(now protocol.Time, f *flow) {
	a := &f.asking
	if a.due == protocol.Never || f.next < a.upTo {
		return
	}
	a.tries, a.told, a.tellers, a.seen = 0, 0, nil, f.next
	if f.fedAt > 0 && now-f.fedAt < m.delay.now {
		a.due = now + m.delay.now
		m.schedule(f, a.due)
		return
	}
	m.request(now, f)
}

// answer sends what a peer asks for, or says what is still kept.
func (m *Member) answer(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	if kept := f.store.kept(fr.first); kept > fr.first {
		m.put(from, f, frame{kind: gone, first: kept})
		return
	}
	if f.store.aging(fr.first, m.config.KeepBytes) {
		m.awaitLaggard(now, from, f.root, fr.first)
	}
	for number := fr.first; number < min(fr.last, fr.first+askAtOnce); number++ {
		seg, ok := f.get(number)
		if !ok {
			break
		}
		m.stats.Repaired++
		m.putSegment(from, f, repair, &seg)
	}
}

// hearGone notes that a peer no longer keeps what was asked for.
func (m *Member) hearGone(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	a := &f.asking
	if f == m.own.flow {
		m.hearLoss(from)
		return
	}
	if fr.first <= f.next || a.due == protocol.Never {
		return
	}
	if a.gone <= f.next {
		// What was gone then is here now: those answers say nothing of this hole.
		a.told, a.tellers = 0, nil
	}
	if a.told == 0 || fr.first < a.gone {
		a.gone = fr.first
	}
	again := slices.Contains(a.tellers, from)
	if !again {
		a.tellers = append(a.tellers, from)
	}
	if a.told++; m.frozen && !again || !m.frozen && a.told <= maxTries {
		a.due = now // ask somebody else
		m.schedule(f, now)
	}
}

// giveUp goes on behind a hole that nobody can mend. The program is told when it is
// that part's turn.
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
	if !m.frozen {
		m.deliver(f, to)
	}
	m.advance(f)
	m.correct(now, f)
	m.remind(now, f)
	f.asking = asking{due: now, sources: f.asking.sources[:0]}
	m.schedule(f, now)
}
