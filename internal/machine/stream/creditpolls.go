package stream

import "github.com/pleach-go/pleach/protocol"

// creditPolls paces the polls to one member for its credits. A poll goes through the whole
// tree, and around members that are stalled, so a member may be polled along several paths,
// and along more of them the slower all members are. If each poll were passed on, a group
// whose members are slow would have more polls than it can answer, which keeps them slow: a
// metastable failure (Bronson et al. 2021). So the time between two polls follows the time
// that an answer takes.
type creditPolls struct {
	pending int           // polls without an answer; a lost one stays until others are answered
	since   protocol.Time // since when there is no answer to them
	last    protocol.Time // when the last one was sent
	heard   bool          // there was an answer after it
	credit  protocol.Time // when the last credit arrived, asked for or not; 0: none did
	took    protocol.Time // how long an answer takes
	wait    protocol.Time // how long after the last poll the next one may be sent
}

// due reports whether the member may be polled again: after twice the time that an answer
// takes, which doubles while there is no answer (Jacobson 1988).
func (p *creditPolls) due(now protocol.Time) bool { return now >= p.last+p.wait }

// stalled reports whether the member has not answered for a time, and for longer than it
// usually takes.
func (p *creditPolls) stalled(now, timeout protocol.Time) bool {
	return p.pending > 0 && now-p.since >= max(timeout, 2*p.took)
}

// sent takes in that the member is polled.
func (p *creditPolls) sent(now protocol.Time) {
	switch {
	case p.pending == 0:
		p.since = now
	case !p.heard:
		p.wait *= 2
	}
	p.wait = max(p.wait, minPollInterval)
	p.pending++
	p.last, p.heard = now, false
}

// answered takes in an answer. Only the last one tells how long an answer takes: an earlier
// one may be the answer to any poll (Karn & Partridge 1987). A member that was stopped
// answers late once, and slow members do so again and again, so the time may double with
// each answer, and shrinks at once.
func (p *creditPolls) answered(now protocol.Time) {
	if p.pending == 0 {
		return
	}
	p.pending--
	p.since, p.heard = now, true
	if p.pending == 0 {
		p.took = min(now-p.last, max(2*p.took, minPollInterval))
		p.wait = 2 * p.took
	}
}

// silentTimeout is how long a member of a view may leave polls unanswered before the tree
// bypasses it, and roots send without its credits. That is much less than in a static group,
// because nothing is lost if the member is only slow: what it lacks is kept.
const silentTimeout = 100 * millisecond

// pollsTo returns the state of the polls to a member.
func (c *credit) pollsTo(r protocol.Rank) *creditPolls {
	if c.polls == nil {
		c.polls = make(map[protocol.Rank]*creditPolls)
	}
	p := c.polls[r]
	if p == nil {
		p = &creditPolls{}
		c.polls[r] = p
	}
	return p
}

// pollForCredit polls a member, unless it is too early for another poll. A member that has
// not answered for long is stalled.
func (m *Member) pollForCredit(now protocol.Time, f *flow, r protocol.Rank, first uint64) {
	p := f.credit.pollsTo(r)
	if p.due(now) {
		m.queueFrame(r, f, frame{kind: creditPoll, first: first})
		p.sent(now)
	}
	timeout := silentTimeout
	if m.static() {
		timeout = stallTimeout
	}
	if p.stalled(now, timeout) {
		m.setStalled(r, true)
	}
}
