package stream

import "github.com/pleach-go/pleach/protocol"

// A root can mark a message. Each member notes when the first segment of such a message
// arrives, and how, so that its driver can tell the root the way that the message has taken.
// A message that is not marked costs nothing, and one that is takes the same way.

// Arrival is the arrival of a marked message.
type Arrival struct {
	// Root and Incarnation name the stream, and Number the segment.
	Root        protocol.Rank
	Incarnation uint64
	Number      uint64
	// From is the member that has sent it: the root itself if this is the root.
	From protocol.Rank
	Path Path
	At   protocol.Time
}

// Path is how a segment has arrived.
type Path = origin

// The paths of an [Arrival].
const (
	ByTree  = fromTree
	ByOffer = fromOffer
	ByPull  = fromPull
)

// maxArrivals bounds the arrivals that wait for the driver. More are not reported.
const maxArrivals = 64

// Trace marks the next message that is written.
func (m *Member) Trace() { m.own.tracing = true }

// noteArrival notes the arrival of a marked segment.
func (m *Member) noteArrival(now protocol.Time, f *flow, from protocol.Rank, number uint64, via origin) {
	if len(m.arrivals) < maxArrivals {
		m.arrivals = append(m.arrivals, Arrival{f.root, f.incarnation, number, from, via, now})
	}
}

// Arrivals returns the arrivals since the last call. The slice is valid until the next one.
func (m *Member) Arrivals() []Arrival {
	list := m.arrivals
	m.arrivals = m.arrivals[:0]
	return list
}
