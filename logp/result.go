package logp

import "github.com/pleach-go/pleach/protocol"

// Result is what one run showed.
type Result struct {
	// Coloring is when the last live process got the message.
	Coloring protocol.Time
	// Quiescence is when the last activity was over.
	Quiescence protocol.Time
	// LastSend is when the last send was over: all processes were free again.
	LastSend protocol.Time
	// CorrectionTime is from the first correction send to quiescence; 0 if
	// no process corrected.
	CorrectionTime protocol.Time
	// Messages counts sends by phase, those to the dead included.
	Messages [protocol.Phases]int64
	// MaxGap is the longest run of ranks on the ring that dissemination left
	// uncolored, dead or alive.
	MaxGap protocol.Rank
	// Unreached counts live processes that never got the message; Live those
	// that lived to the end.
	Unreached, Live protocol.Rank
}

// Total is the number of all messages.
func (r *Result) Total() int64 {
	var sum int64
	for _, n := range r.Messages {
		sum += n
	}
	return sum
}
