package stream

// Receipts count messages, so that the messages of a stream without a receipt are known when
// the stream ends: its root may continue in another membership, with another stream.

// receipts counts complete messages of this member's stream, from its beginning.
type receipts struct {
	accepted uint64 // messages that Write has taken in full
	polled   uint64 // messages sent when Poll last asked for something new
	proven   uint64 // messages that every member of a view has acknowledged
	// askedProcessed are the messages sent when PollProcessed last asked for something new, and
	// processed those that the programs of all members of a view have processed.
	askedProcessed, processed uint64
}

// sent returns how many complete messages have left the outbox.
func (o *ownStream) sent() uint64 { return o.receipts.accepted - o.unsent }

// Accepted returns how many messages Write has taken in full.
func (m *Member) Accepted() uint64 { return m.own.receipts.accepted }

// Proven returns how many of them, from the first one on, every member of a view has
// acknowledged. Nothing is known about the others.
func (m *Member) Proven() uint64 { return m.own.receipts.proven }

// ProvenProcessed returns how many of them, from the first one on, the programs of all members
// of a view have processed. Nothing is known about the others.
func (m *Member) ProvenProcessed() uint64 { return m.own.receipts.processed }
