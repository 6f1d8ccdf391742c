package stream

import "github.com/pleach-go/pleach/protocol"

// What the transport reports about peers. No peer is excluded for it: a report only
// says that a frame did not arrive, so that the offer is sent to the next neighbor.

// SendFailed reports that the frame Next returned last could not be sent, because the
// peer's queue is full or because the peer is down.
func (m *Member) SendFailed(now protocol.Time, full bool) {
	to := m.lastSent.to
	if m.lastSent.kind == offer {
		m.lastSent.flow.correction.toldTo = 0
	}
	if full {
		switch m.lastSent.kind {
		case data:
			m.startBacklog(now, m.lastSent)
		case grantCredit:
			m.lastSent.flow.credit.refused = true
		case offer, repair:
			m.noteMissed(to, m.lastSent.flow)
		}
		return
	}
	m.setDown(to, true)
	m.scheduleRetry(now)
	if m.lastSent.kind == offer && !m.lastSent.retry {
		m.offerFurther(now, to, m.lastSent.flow, m.lastSent.rightward)
	}
}

// Down reports that a connection to a peer has ended or could not be made. What was
// sent to the peer last is lost. If it was the nearest live neighbor on its side, its
// offers go to the next one out.
func (m *Member) Down(now protocol.Time, peer protocol.Rank) {
	delete(m.backlogs, peer)
	delete(m.missed, peer)
	m.releaseBuffer(peer)
	m.forgetTold(peer)
	left, right := m.roster.distances(peer)
	if right == 0 {
		return
	}
	nearest := m.isNearest(left, false) || m.isNearest(right, true)
	m.setDown(peer, true)
	if !nearest {
		return
	}
	m.scheduleRetry(now)
	for _, f := range m.scheduled {
		m.offerFurther(now, peer, f, f.correction.running && f.correction.rightwardOffers > 0)
	}
}

// retryInterval is how often neighbors that are down are tried, and maxRetryDistance
// how far out.
const (
	retryInterval    = 1000 * millisecond
	maxRetryDistance = 4
)

// scheduleRetry schedules a try of the neighbors that are down, even if there is
// nothing new to offer. A neighbor that was cut off while all streams were quiet would
// never learn otherwise what it has missed. Once it is back, Up offers it everything.
func (m *Member) scheduleRetry(now protocol.Time) {
	if m.retryDue == protocol.Never {
		m.retryDue = now + retryInterval
		m.due = min(m.due, m.retryDue)
	}
}

// retryDown tries the nearest neighbors that are down.
func (m *Member) retryDown(now protocol.Time) {
	m.retryDue = protocol.Never
	for _, rightward := range []bool{false, true} {
		for d := 1; d <= min(maxRetryDistance, m.roster.size()/2); d++ {
			peer := m.roster.neighbor(d, rightward)
			if !m.down[peer] {
				break
			}
			m.offer(now, peer, m.own.flow, undirected)
			m.outbox.At(m.outbox.Len() - 1).retry = true
			m.scheduleRetry(now)
		}
	}
}

// isNearest reports whether all neighbors nearer than a distance are down.
func (m *Member) isNearest(distance int, rightward bool) bool {
	for d := 1; d < distance; d++ {
		if !m.down[m.roster.neighbor(d, rightward)] {
			return false
		}
	}
	return true
}

// Writable reports that a peer's queue has room again. The peer is offered what it has
// missed.
func (m *Member) Writable(now protocol.Time, peer protocol.Rank) {
	m.resumeBacklog(peer)
	m.repeatCredits(peer)
	m.offerMissed(now, peer)
}

// Up reports that there is a connection to a peer. What was sent to the peer before may
// be lost, so it is offered all streams. Its backlog stays: that comes after the frames
// that waited for the connection.
func (m *Member) Up(now protocol.Time, peer protocol.Rank) {
	m.setDown(peer, false)
	m.setStalled(peer, false)
	for _, f := range m.flows {
		if f.parent == peer {
			f.fedAt = 0
		}
	}
	delete(m.missed, peer)
	m.forgetTold(peer)
	m.offerAll(now, peer)
}

// forgetTold notes that what a peer was offered may be lost.
func (m *Member) forgetTold(peer protocol.Rank) {
	if peer == m.roster.neighbor(1, false) {
		for _, f := range m.flows {
			f.correction.toldTo = 0
		}
	}
}

// offerAll offers a peer all streams, in order of root.
func (m *Member) offerAll(now protocol.Time, peer protocol.Rank) {
	if !m.roster.has(peer) {
		return
	}
	for _, f := range m.flowsByRoot() {
		if f.next > 0 {
			m.offer(now, peer, f, undirected)
		}
	}
}

// maxOfferDistance bounds how far out an offer goes past peers that are down.
const maxOfferDistance = 16

// offerPast makes an offer to the neighbor at a distance and, while neighbors are down,
// to the next ones out too: a neighbor that seems down may be back. If such an offer fails,
// it goes no further: the next neighbor has one already. Otherwise each failure would repeat
// all offers beyond, and n neighbors that are down would cost 2ⁿ frames.
func (m *Member) offerPast(now protocol.Time, f *flow, distance int, rightward bool, toward direction) {
	// Beyond half of the ring the other direction is shorter, and turning back there
	// would never end.
	for ; distance <= min(m.roster.size()/2, maxOfferDistance); distance++ {
		peer := m.roster.neighbor(distance, rightward)
		m.offer(now, peer, f, toward)
		if !m.down[peer] {
			return
		}
		m.outbox.At(m.outbox.Len() - 1).retry = true
	}
}

// offerFurther sends the offer to the next neighbor beyond one that is down. A correction
// that awaits an answer from the right does so itself, so it continues at once. Any
// other offer is repeated there.
func (m *Member) offerFurther(now protocol.Time, from protocol.Rank, f *flow, awaitsAnswer bool) {
	if awaitsAnswer {
		if f.correction.running {
			f.correction.due = now
			m.schedule(f, now)
		}
		return
	}
	left, right := m.roster.distances(from)
	if right == 0 {
		return
	}
	m.offerPast(now, f, min(left, right)+1, right < left, undirected)
}
