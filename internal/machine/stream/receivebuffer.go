package stream

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Receive buffers let a transport read a long segment directly to where it stays.

// ReceiveBuffer returns the buffer for the rest of a frame of size bytes that begins
// with head, or nil to use Receive: then the frame is not a segment that is missing
// here. The transport owns the buffer until it calls BufferFilled, or until the next
// ReceiveBuffer or Down for the same peer.
func (m *Member) ReceiveBuffer(from protocol.Rank, head []byte, size int) []byte {
	m.releaseBuffer(from)
	fr, err := parse(head)
	if err != nil || fr.kind != data && fr.kind != repair {
		return nil
	}
	f := m.flowOfFrame(&fr)
	if f == nil || f.has(fr.first) {
		return nil
	}
	rest := size - len(head)
	r := m.bufferFor(f, fr.first, len(fr.segment)+rest, int(fr.remaining))
	r.lent = true
	m.receiveBuffers[from] = r
	at := len(r.memory) + len(fr.segment)
	return r.memory[at : at+rest : at+rest]
}

// releaseBuffer takes back the buffer that was lent for a peer's frame.
func (m *Member) releaseBuffer(peer protocol.Rank) {
	if r := m.receiveBuffers[peer]; r != nil {
		r.lent = false
		delete(m.receiveBuffers, peer)
	}
}

// BufferFilled handles a frame whose rest is in the buffer that ReceiveBuffer returned
// for it. It is like Receive otherwise.
func (m *Member) BufferFilled(now protocol.Time, from protocol.Rank, head, body []byte) error {
	fr, err := parse(head)
	r := m.receiveBuffers[from]
	m.releaseBuffer(from)
	if err != nil || r == nil || r.next != fr.first {
		return m.Receive(now, from, slices.Concat(head, body))
	}
	n := len(r.memory)
	whole := r.memory[n : n+len(fr.segment)+len(body)]
	copy(whole, fr.segment)
	fr.segment, fr.encoded, fr.buffer = whole, nil, r
	m.receive(now, from, &fr)
	return nil
}
