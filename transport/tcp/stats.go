package tcp

import (
	"errors"
	"sync/atomic"

	"github.com/pleach-go/pleach/transport"
)

// Stats counts what a transport has done since it was made. Bytes are those of
// frames, without their headers.
type Stats struct {
	FramesSent, BytesSent         uint64 // Taken by Send.
	FramesReceived, BytesReceived uint64 // Handed to the handler.

	Dials, DialsFailed uint64
	Accepted           uint64 // Connections that peers have opened.
	Refused            uint64 // Those of strangers, mismatches, stale or duplicate ones.
	Evicted            uint64 // Connections closed in handshake, for newer ones: too many.
	Requests           uint64 // Requests of guests handed to the handler.

	DroppedFull  uint64 // Not taken by Send: the queue was full.
	DroppedDown  uint64 // Not taken by Send: the peer was down.
	DroppedOther uint64 // Not taken by Send: too large, no such peer, or closed.
	// DroppedLost were taken by Send, and then lost with the connection, or
	// because none could be made. Those that were being written, or in the
	// system's hands, are not counted: nobody knows how far they got.
	DroppedLost uint64

	Connections int // Open now.
	Handshakes  int // Now between being accepted and being known.
	Clients     int // Waiting for an answer now, or about to ask.
}

// counters are what Stats is made of.
type counters struct {
	framesSent, bytesSent         atomic.Uint64
	framesReceived, bytesReceived atomic.Uint64
	dials, dialsFailed            atomic.Uint64
	accepted, refused, evicted    atomic.Uint64
	requests                      atomic.Uint64

	droppedFull, droppedDown  atomic.Uint64
	droppedOther, droppedLost atomic.Uint64

	connections, clients atomic.Int64
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

// Stats returns the present counts. They are read one after the other, so two
// of them may differ by what happened in between.
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
		Evicted:        c.evicted.Load(),
		Requests:       c.requests.Load(),
		DroppedFull:    c.droppedFull.Load(),
		DroppedDown:    c.droppedDown.Load(),
		DroppedOther:   c.droppedOther.Load(),
		DroppedLost:    c.droppedLost.Load(),
		Connections:    int(c.connections.Load()),
		Handshakes:     t.handshakes.size(),
		Clients:        int(c.clients.Load()),
	}
}
