package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// What the transport says of peers. Nobody is given up because of it: it only
// says that a frame did not arrive, so that an offer goes one further.

// SendFailed says that the frame Next returned last could not be sent: the peer's
// queue is full, or it is down.
func (m *Member) SendFailed(now protocol.Time, full bool) {
	to := m.lastSent.to
	if full {
		if m.lastSent.kind == data {
			m.startBacklog(now, m.lastSent)
		}
		return
	}
	m.down[to] = true
	m.scheduleRetry(now)
	if m.lastSent.kind == offer && !m.lastSent.retry {
		m.offerFurther(now, to, m.lastSent.flow, m.lastSent.rightward)
	}
}

// Down says that there is no connection to a peer any more, or that none could be
// made: what was sent to it lately is lost. If it was the nearest on its side, what
// it was offered goes to the next one out.
func (m *Member) Down(now protocol.Time, peer protocol.Rank) {
	delete(m.backlogs, peer)
	m.releaseBuffer(peer)
	left, right := m.roster.distances(peer)
	if right == 0 {
		return
	}
	nearest := m.isNearest(left, false) || m.isNearest(right, true)
	m.down[peer] = true
	if !nearest {
		return
	}
	m.scheduleRetry(now)
	for _, f := range m.scheduled {
		m.offerFurther(now, peer, f, f.correction.running && f.correction.rightwardOffers > 0)
	}
}

// retryEvery is how often neighbors that are down are tried, and retryFar how far
// out.
const (
	retryInterval    = 1000 * millisecond
	maxRetryDistance = 4
)

// tryAgain has neighbors that are down tried before long, though there may be
// nothing new to tell: one who was cut off while all were quiet would never learn
// what it has missed. Once it is back, Up tells it everything.
func (m *Member) scheduleRetry(now protocol.Time) {
	if m.retryDue == protocol.Never {
		m.retryDue = now + retryInterval
		m.due = min(m.due, m.retryDue)
	}
}

// retry tries the nearest neighbors that are down.
func (m *Member) retryDown(now protocol.Time) {
	m.retryDue = protocol.Never
	for _, rightward := range []bool{false, true} {
		for d := 1; d <= min(maxRetryDistance, m.roster.size()/2); d++ {
			peer := m.roster.neighbor(d, rightward)
			if !m.down[peer] {
				break
			}
			m.offer(peer, m.own.flow, undirected)
			m.outbox.At(m.outbox.Len() - 1).retry = true
			m.scheduleRetry(now)
		}
	}
}

// reaches reports whether all neighbors nearer than a distance are down.
func (m *Member) isNearest(distance int, rightward bool) bool {
	for d := 1; d < distance; d++ {
		if !m.down[m.roster.neighbor(d, rightward)] {
			return false
		}
	}
	return true
}

// Writable says that a peer whose queue was full has room again. It may have missed
// something, so it is told what there is.
func (m *Member) Writable(_ protocol.Time, peer protocol.Rank) {
	m.resumeBacklog(peer)
	m.offerAll(peer)
}

// Up says that there is a connection to a peer. What was sent to it before may
// have been lost, so it is told what there is. A backlog stays: what is in it comes
// after what has waited for the connection.
func (m *Member) Up(_ protocol.Time, peer protocol.Rank) {
	delete(m.down, peer)
	for _, f := range m.flows {
		if f.parent == peer {
			f.fedAt = 0
		}
	}
	m.offerAll(peer)
}

// offerAll tells a peer of all streams, in order of root.
func (m *Member) offerAll(peer protocol.Rank) {
	if !m.roster.has(peer) {
		return
	}
	roots := make([]protocol.Rank, 0, len(m.flows))
	for root, f := range m.flows {
		if f.next > 0 {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	for _, root := range roots {
		m.offer(peer, m.flows[root], undirected)
	}
}

// maxFurther bounds how far out an offer goes past peers that are down.
const maxOfferDistance = 16

// offerPast offers to a neighbor at a distance and, past those known to be down,
// to those further out: one who seems down may be back.
func (m *Member) offerPast(f *flow, distance int, rightward bool, toward direction) {
	// Beyond half of the ring the other way is shorter, and turning back from
	// there would never end.
	for ; distance <= min(m.roster.size()/2, maxOfferDistance); distance++ {
		peer := m.roster.neighbor(distance, rightward)
		m.offer(peer, f, toward)
		if !m.down[peer] {
			return
		}
	}
}

// offerFurther goes on from a neighbor that is down to the next one out: on the
// way of a correction that asks to the right by pulling it again at once, else
// by offering there.
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
	m.offerPast(f, min(left, right)+1, right < left, undirected)
}
