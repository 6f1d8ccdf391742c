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
	to := m.last.to
	if full {
		if m.last.kind == data {
			m.stall(now, m.last)
		}
		return
	}
	m.down[to] = true
	m.tryAgain(now)
	if m.last.kind == offer && !m.last.probe {
		m.offerFurther(now, to, m.last.flow, m.last.rightward)
	}
}

// Down says that there is no connection to a peer any more, or that none could be
// made: what was sent to it lately is lost. If it was the nearest on its side, what
// it was offered goes to the next one out.
func (m *Member) Down(now protocol.Time, peer protocol.Rank) {
	delete(m.backlogs, peer)
	m.vacate(peer)
	left, right := m.lineup.distances(peer)
	if right == 0 {
		return
	}
	nearest := m.reaches(left, false) || m.reaches(right, true)
	m.down[peer] = true
	if !nearest {
		return
	}
	m.tryAgain(now)
	for _, f := range m.timed {
		m.offerFurther(now, peer, f, f.correction.running && f.correction.asks > 0)
	}
}

// retryEvery is how often neighbors that are down are tried, and retryFar how far
// out.
const (
	retryEvery = 1000 * millisecond
	retryFar   = 4
)

// tryAgain has neighbors that are down tried before long, though there may be
// nothing new to tell: one who was cut off while all were quiet would never learn
// what it has missed. Once it is back, Up tells it everything.
func (m *Member) tryAgain(now protocol.Time) {
	if m.retryDue == protocol.Never {
		m.retryDue = now + retryEvery
		m.due = min(m.due, m.retryDue)
	}
}

// retry tries the nearest neighbors that are down.
func (m *Member) retry(now protocol.Time) {
	m.retryDue = protocol.Never
	for _, rightward := range []bool{false, true} {
		for d := 1; d <= min(retryFar, m.lineup.size()/2); d++ {
			peer := m.lineup.neighbor(d, rightward)
			if !m.down[peer] {
				break
			}
			m.offer(peer, m.own.flow, news)
			m.outbox.at(m.outbox.len() - 1).probe = true
			m.tryAgain(now)
		}
	}
}

// reaches reports whether all neighbors nearer than a distance are down.
func (m *Member) reaches(distance int, rightward bool) bool {
	for d := 1; d < distance; d++ {
		if !m.down[m.lineup.neighbor(d, rightward)] {
			return false
		}
	}
	return true
}

// Writable says that a peer whose queue was full has room again. It may have missed
// something, so it is told what there is.
func (m *Member) Writable(_ protocol.Time, peer protocol.Rank) {
	m.resume(peer)
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
	if !m.lineup.has(peer) {
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
		m.offer(peer, m.flows[root], news)
	}
}

// maxFurther bounds how far out an offer goes past peers that are down.
const maxFurther = 16

// offerPast offers to a neighbor at a distance and, past those known to be down,
// to those further out: one who seems down may be back.
func (m *Member) offerPast(f *flow, distance int, rightward bool, way way) {
	// Beyond half of the ring the other way is shorter, and turning back from
	// there would never end.
	for ; distance <= min(m.lineup.size()/2, maxFurther); distance++ {
		peer := m.lineup.neighbor(distance, rightward)
		m.offer(peer, f, way)
		if !m.down[peer] {
			return
		}
	}
}

// offerFurther goes on from a neighbor that is down to the next one out: on the
// way of a correction that asks to the right by pulling it again at once, else
// by offering there.
func (m *Member) offerFurther(now protocol.Time, from protocol.Rank, f *flow, asking bool) {
	if asking {
		if f.correction.running {
			f.correction.due = now
			m.schedule(f, now)
		}
		return
	}
	left, right := m.lineup.distances(from)
	if right == 0 {
		return
	}
	m.offerPast(f, min(left, right)+1, right < left, news)
}
