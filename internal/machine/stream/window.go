package stream

import (
	"math"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Flow control is end to end, as in TCP and in JGroups' multicast flow control (MFC):
// a root has at most a window of bytes in flight, which are those that some member may
// not have accepted yet. Members grant credits: a credit is the position before which
// a member and all below it in the tree have accepted everything. Credits are
// cumulative and combined on their way up. A member grants several per window, so flow
// control costs a few small frames per megabyte, and no message waits for one while
// all members keep up.
//
// Two invariants follow. A member never trims a segment that another may still lack
// (store.go), because a window is smaller than KeepBytes. And no member stops to read
// from its peers, so members that all broadcast at once never wait for each other in a
// cycle: what they have to buffer is bounded by the windows.
//
// A member whose inbox is full grants nothing, so a program that does not receive
// blocks the roots, and with them the programs that broadcast.
//
// A member that does not answer polls grants nothing, and nobody knows yet whether it is
// dead. Until a view decides that, roots send without it: a credit tells apart what all below
// have accepted, which is kept until then, and what those have that answer, which opens the
// window. What is kept for members that do not answer is bounded, too: by holdFactor.
//
// A credit is no acknowledgment (stable.go): a member that has given up a segment
// still grants, and never acknowledges. A member that prefers to drop grants even what
// it has no room for.

const (
	// activeFor is how long after its last segment a root counts as active. Active
	// roots share the budget for windows.
	activeFor = 500 * millisecond
	// activeInterval is how often active roots are counted, to leave out those that have
	// fallen quiet.
	activeInterval = 50 * millisecond
	// initialWindow is what the active roots have in flight at most, as far as one of
	// them decides, before its first credit. Each credit adds as much as it grants (slow
	// start, Jacobson 1988). Roots that begin together do not know of each other yet, so
	// their number multiplies it.
	initialWindow = 256 << 10
	// targetDelay is how long a segment and its credit may wait in queues: how much longer
	// than baseDelay the credit may take, or by half if that is more, because credits are
	// granted a few times per window. Once one takes longer, more in flight would only wait
	// in queues longer, so the window is halved, and does not grow until that credit is
	// here (as delay-based congestion control does; Brakmo & Peterson 1995).
	targetDelay = 50 * millisecond
	// minWindow is the least that the active roots have in flight together, as far as one
	// of them decides, and minShare the least that each may have, unless KeepBytes or
	// InboxBytes is smaller.
	minWindow = 256 << 10
	minShare  = 128 << 10
	// maxCreditInterval bounds the time between two polls for lost credits.
	maxCreditInterval = 50 * millisecond
	// creditBytes is for how many bytes that it has received a member grants a credit,
	// and relayBytes for how many that members below have granted. The latter is
	// smaller, because the delays of all levels of the tree add up. Where many roots
	// share the budget, a member grants minCredits for the share of each at least, and
	// minGrants for what each has in flight.
	creditBytes = 128 << 10
	relayBytes  = 32 << 10
	minCredits  = 24
	minGrants   = 4
	// holdFactor bounds what the active roots together have in flight while some member does
	// not answer, in units of KeepBytes. A detector takes a second or two, in which a root
	// at full rate sends about as much.
	holdFactor = 8
)

// granted is what a credit says: the position before which all have accepted everything,
// and the one of those that answer. The latter is never smaller.
type granted struct{ all, live uint64 }

// credit is a member's part in the flow control of one flow.
type credit struct {
	to       protocol.Rank // the member to grant to: the one that sent or polled last
	last     granted       // granted last; at the root, what members have accepted
	accepted uint64        // what all members have accepted, as far as the root has said
	refused  bool          // the last credit met a full queue
	// from is what each of flow.grantors has granted, and polls paces the polls to it.
	from  map[protocol.Rank]granted
	polls map[protocol.Rank]*creditPolls
}

// share returns how many bytes each active root may have in flight if all together may
// have so many.
func (m *Member) share(now protocol.Time, together int) int {
	m.countActive(now)
	return m.divide(min(together, min(m.config.KeepBytes, m.config.InboxBytes)/4*3))
}

// divide returns what each active root has of so many bytes: minShare at least, if there
// are as many.
func (m *Member) divide(bytes int) int {
	return max(bytes/max(m.active, 1), min(minShare, bytes))
}

// setActive records that the root of a flow has sent something. One that begins to send
// counts at once: where all roots begin at the same time, each would otherwise take what
// all of them may have in flight.
func (m *Member) setActive(now protocol.Time, f *flow) {
	if !f.active(now) {
		m.active++
	}
	f.activeAt = now
}

// active reports whether a flow's root has sent lately.
func (f *flow) active(now protocol.Time) bool { return f.activeAt > 0 && now-f.activeAt < activeFor }

// countActive counts the roots that have sent lately, unless it has done so a moment ago.
func (m *Member) countActive(now protocol.Time) {
	if now < m.activeDue {
		return
	}
	m.activeDue, m.active = now+activeInterval, 0
	for _, f := range m.flows {
		if f.active(now) {
			m.active++
		}
	}
}

// windowFull reports whether flow control blocks this member's own stream. It polls
// then, because a credit may have been lost.
func (m *Member) windowFull(now protocol.Time) bool {
	o := &m.own
	if o.blockedSince == 0 && now-o.flow.activeAt > activeFor {
		o.window = initialWindow
	}
	window, next := m.share(now, o.window), o.waiting.At(0).weight()
	held := o.held > 0 && o.held+o.inFlight+next > m.divide(holdFactor*m.config.KeepBytes)
	if !held && (o.inFlight == 0 || o.inFlight+next <= window) {
		if o.blockedSince > 0 {
			o.blockedSince, o.burst.wrote = 0, now // the program has not paused: it was blocked
		}
		return false
	}
	if o.blockedSince == 0 {
		o.blockedSince, o.creditInterval = now, minPollInterval
		o.creditDue = now + o.creditInterval
	}
	m.due = min(m.due, o.creditDue)
	return true
}

// pollCredit asks for credits that may have been lost.
func (m *Member) pollCredit(now protocol.Time) {
	o := &m.own
	o.creditDue = protocol.Never
	if o.blockedSince == 0 {
		return
	}
	m.advanceCredit(now) // a member that was waited for may not count any more
	f := o.flow
	m.forwardCreditPoll(now, f, f.next)
	o.creditDue = now + o.creditInterval
	o.creditInterval = min(2*o.creditInterval, maxCreditInterval)
	m.due = min(m.due, o.creditDue)
}

// handleCreditPoll grants a credit at once, and asks the members below for theirs. The
// root waits, so it sends nothing by which this member would learn what it lacks: the
// poll tells it.
func (m *Member) handleCreditPoll(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	f.credit.to = from
	f.wanted = max(f.wanted, fr.first)
	if f.next < f.wanted {
		m.awaited = true
		m.schedulePull(now, f, from, false)
	}
	m.sendCredit(f, m.creditPosition(f))
	m.forwardCreditPoll(now, f, fr.first)
}

// forwardCreditPoll polls the members below that have not granted everything before a
// number.
func (m *Member) forwardCreditPoll(now protocol.Time, f *flow, first uint64) {
	for _, r := range slices.Clone(f.grantors) { // a stalled member changes them
		if f.credit.from[r].all < first {
			m.pollForCredit(now, f, r, first)
		}
	}
}

// handleCredit handles a credit.
func (m *Member) handleCredit(now protocol.Time, f *flow, from protocol.Rank, fr *frame) {
	c := &f.credit
	if f == m.own.flow {
		c.pollsTo(from).credit = now
	}
	if p := c.polls[from]; p != nil {
		p.answered(now)
	}
	m.setStalled(from, false)
	before := c.from[from]
	grants := granted{max(before.all, fr.first), max(before.live, fr.first, fr.live)}
	if fr.view != m.view || grants == before {
		return // in another view, other members are below it
	}
	if c.from == nil {
		c.from = make(map[protocol.Rank]granted)
	}
	c.from[from] = grants
	if f == m.own.flow {
		m.advanceCredit(now)
		return
	}
	m.grant(now, f, relayBytes)
}

// advanceCredit takes in what members have accepted of this member's stream: it is no longer
// in flight.
func (m *Member) advanceCredit(now protocol.Time) {
	o, f := &m.own, m.own.flow
	late := m.creditLate(now)
	to := m.creditPosition(f)
	if to.live > f.credit.last.live {
		if landed := m.land(to.live); !late {
			o.window = min(o.window+landed, m.config.KeepBytes)
		}
		o.creditInterval = minPollInterval // there is progress
	}
	m.letGo(to.all)
	if late && !o.halved {
		o.window, o.halved = max(o.window/2, minWindow), true
	}
	if o.timed > 0 && f.credit.last.live >= o.timed {
		o.base.measure(now, now-o.timedAt)
		o.timed, o.halved = 0, false
	}
}

// creditLate reports whether the credit that is measured waits in queues for too long.
// The first one is never late: it tells what to expect.
func (m *Member) creditLate(now protocol.Time) bool {
	o := &m.own
	base, known := o.base.known()
	return known && o.timed > 0 && now-o.timedAt > base+max(targetDelay, base/2)
}

// land takes everything before a position out of flight, and returns its weight. It is held
// from then on for members that do not answer.
func (m *Member) land(to uint64) (weight int) {
	f, c := m.own.flow, &m.own.flow.credit
	weight = f.store.weightOf(c.last.live, to)
	c.last.live = max(c.last.live, to)
	m.own.held += weight
	m.own.inFlight -= weight
	return weight
}

// letGo records that all members have accepted everything before a position: nothing of it
// is held any more.
func (m *Member) letGo(to uint64) {
	f, c := m.own.flow, &m.own.flow.credit
	m.own.held -= f.store.weightOf(c.last.all, to)
	c.last.all = max(c.last.all, to)
	c.accepted = c.last.all
}

// unaccepted returns how many segments before a number some member may not have accepted
// yet, as far as this member knows.
func (f *flow) unaccepted(number uint64) uint32 {
	return uint32(min(number-min(f.credit.accepted, number), math.MaxUint32))
}

// timeCredit begins to measure how long the credit of the last segment takes, unless it
// measures another one.
func (m *Member) timeCredit(now protocol.Time) {
	if o := &m.own; o.timed == 0 {
		o.timed, o.timedAt = o.flow.next, now
	}
}

// creditPosition returns the positions before which this member and all below it, or those
// that answer, have accepted everything, or given it up. While the inbox is full, this member
// accepts nothing more or, if it prefers to drop, holds up no root.
func (m *Member) creditPosition(f *flow) granted {
	position := f.next
	switch full := f != m.own.flow && m.inboxFull(); {
	case full && m.config.Drop:
		position = max(position, f.wanted)
	case full:
		position = min(position, f.credit.last.live)
	}
	g := granted{position, position}
	for _, r := range f.grantors {
		from := f.credit.from[r]
		g.all = min(g.all, from.all)
		if !m.avoids(r) {
			g.live = min(g.live, from.live)
		}
	}
	return g
}

// grant sends a credit up the tree, if enough has arrived since the last one.
func (m *Member) grant(now protocol.Time, f *flow, every int) {
	last, most := f.credit.last, max(f.next, f.wanted)
	if last.all == last.live && !m.creditDue(now, f, last.live, most, every) {
		return // the common case
	}
	if to := m.creditPosition(f); m.creditDue(now, f, last.live, to.live, every) ||
		m.creditDue(now, f, last.all, to.all, every) {
		m.sendCredit(f, to)
	}
}

// creditDue reports whether a position is far enough beyond that of the last credit, estimated
// by the average segment: so many bytes, a fraction of the share of each root or, because
// a root may have less than its share in flight, of what it has.
func (m *Member) creditDue(now protocol.Time, f *flow, last, position uint64, every int) bool {
	n := f.store.segments.Len()
	if n == 0 || position <= last {
		return false
	}
	segments := int(position - last)
	weight := segments * (f.store.weight / n)
	if segments*(f.store.bytes/n) >= every || weight >= m.share(now, m.config.KeepBytes)/minCredits {
		return true
	}
	inFlight := int(f.wanted - f.credit.accepted)
	return m.active > 1 && weight >= minShare/minGrants && segments >= inFlight/minGrants
}

// grantWithheld grants what was withheld while the inbox was full.
func (m *Member) grantWithheld() {
	for _, f := range m.flowsByRoot() {
		if to := m.creditPosition(f); f != m.own.flow && (to.all > f.credit.last.all || to.live > f.credit.last.live) {
			m.sendCredit(f, to)
		}
	}
}

// sendCredit grants positions. A credit of nothing is a sign of life: a member that does not
// answer polls is stalled.
func (m *Member) sendCredit(f *flow, to granted) {
	c := &f.credit
	if c.to == protocol.NoRank {
		return
	}
	c.last = granted{max(c.last.all, to.all), max(c.last.live, to.live)}
	fr := frame{kind: grantCredit, first: to.all}
	if to.live > to.all {
		fr.live = to.live
	}
	m.queueFrame(c.to, f, fr)
}

// repeatCredits grants again what met a full queue, which has room now.
func (m *Member) repeatCredits(peer protocol.Rank) {
	for _, f := range m.flowsByRoot() {
		if c := &f.credit; c.refused && c.to == peer {
			c.refused = false
			m.sendCredit(f, m.creditPosition(f))
		}
	}
}

// restartCredits starts over with the members of a new view: what the members below
// have granted was for others. What was in flight stays so until they grant it: a member
// of the view may install it later, and pull until then what it lacks of the view before.
func (m *Member) restartCredits(now protocol.Time, f *flow) {
	c := &f.credit
	c.from, c.polls = nil, nil
	if f != m.own.flow {
		c.last = granted{min(c.last.all, f.viewStart), min(c.last.live, f.viewStart)}
		return
	}
	m.own.timed, m.own.halved, m.own.base = 0, false, baseDelay{} // paths are others now
	if m.own.blockedSince > 0 {
		m.own.creditDue, m.due = now, now // nothing that they have granted so far counts
	}
}
