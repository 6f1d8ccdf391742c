package logp

import (
	"encoding/json"
	"io"

	"github.com/pleach-go/pleach/protocol"
)

// Event is one line of a run's trace.
type Event struct {
	// Time is when it happened: a send's start, a receive's end.
	Time protocol.Time `json:"t"`
	// What happened.
	What What `json:"event"`
	// Rank is where; Peer is the other end of a message (-1: none).
	Rank protocol.Rank `json:"rank"`
	Peer protocol.Rank `json:"peer"`
	// Phase is what the message was for.
	Phase string `json:"phase,omitempty"`
}

// What is a kind of event.
type What string

// The kinds of events.
const (
	Sent     What = "send"    // Rank started a send to Peer
	Received What = "receive" // Rank ended a receive from Peer
	Colored  What = "color"   // Rank became complete, by a message from Peer
	Lost     What = "lost"    // Rank is dead and a message from Peer arrived
	Died     What = "die"     // Rank died
)

// WriteTrace returns a function for [Simulator.Trace] that writes events as
// JSON lines. The first error ends the writing and is kept in *err.
func WriteTrace(w io.Writer, err *error) func(Event) {
	enc := json.NewEncoder(w)
	return func(e Event) {
		if *err == nil {
			*err = enc.Encode(e)
		}
	}
}
