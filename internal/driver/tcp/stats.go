package tcp

import (
	"errors"
	"sync/atomic"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Stats counts the events of a transport since New. Bytes are those of frames,
// without their headers.
type Stats struct {
	FramesSent, BytesSent         uint64 // Taken by Send.
	FramesReceived, BytesReceived uint64 // Passed to the handler.

	Dials, DialsFailed uint64
	Accepted           uint64 // Connections opened by peers.
	Refused            uint64 // Unknown, mismatched, stale or duplicate connections.
	Evicted            uint64 // Handshakes closed for newer ones: too many at a time.
	Requests           uint64 // Requests of clients passed to the handler.

	DroppedFull  uint64 // Not taken by Send: the queue was full.
	DroppedDown  uint64 // Not taken by Send: the peer was down.
	DroppedOther uint64 // Not taken by Send: too large, no such peer, or closed.
	// DroppedLost were taken by Send and then lost with the connection, or because
	// none could be made. Frames that the writer or the system already had are not
	// counted: it is not known how far they got.
	DroppedLost uint64

	Connections int // Open now.
	Shared      int // Those of them that use shared memory.
	Handshakes  int // Handshakes in progress now.
	Clients     int // Clients connected now.
}

// counters are the source of Stats.
type counters struct {
	framesSent, bytesSent         atomic.Uint64
	framesReceived, bytesReceived atomic.Uint64
	dials, dialsFailed            atomic.Uint64
	accepted, refused             atomic.Uint64
	requests                      atomic.Uint64

	droppedFull, droppedDown  atomic.Uint64
	droppedOther, droppedLost atomic.Uint64

	connections, shared atomic.Int64
}

// dropped counts a frame that Send did not take.
func (c *counters) dropped(err error) {
	switch {
	case errors.Is(err, transport.ErrFull):
		c.droppedFull.Add(1)
	case errors.Is(err, transport.ErrDown):
		c.droppedDown.Add(1)
	default:
		c.droppedOther.Add(1)
	}
}

// Stats returns the present counts. They are not an atomic snapshot: an event may
// be in one of them and not yet in another.
func (t *Transport) Stats() Stats {
	c := &t.count
	return Stats{
		FramesSent:     c.framesSent.Load(),
		BytesSent:      c.bytesSent.Load(),
		FramesReceived: c.framesReceived.Load(),
		BytesReceived:  c.bytesReceived.Load(),
		Dials:          c.dials.Load(),
		DialsFailed:    c.dialsFailed.Load(),
		Accepted:       c.accepted.Load(),
		Refused:        c.refused.Load(),
		Evicted:        t.gate.Stats().Evicted,
		Requests:       c.requests.Load(),
		DroppedFull:    c.droppedFull.Load(),
		DroppedDown:    c.droppedDown.Load(),
		DroppedOther:   c.droppedOther.Load(),
		DroppedLost:    c.droppedLost.Load(),
		Connections:    int(c.connections.Load()),
		Shared:         int(c.shared.Load()),
		Handshakes:     t.gate.Stats().Visits,
		Clients:        t.gate.Stats().Waiting,
	}
}

// Queued returns how many bytes wait to be written to a peer. Those that the system has
// taken are not among them.
func (t *Transport) Queued(peer protocol.Rank) int {
	if !t.isPeer(peer) {
		return 0
	}
	p := t.peers.get(peer)
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.waiting()
}
