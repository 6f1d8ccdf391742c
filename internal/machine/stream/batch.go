package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// A batch is one segment that holds several small messages. A program that broadcasts
// many small messages in a row would have every member forward, number and keep each of
// them alone, which costs more than everything else. So in a burst, and only then,
// messages wait a moment for each other. A single message, or a few, are never delayed.

const (
	// Messages are a burst if more than minBurst of them follow each other within
	// burstGap each. The time that it takes to send one does not count: it grows with the
	// number of children, and the program cannot write meanwhile.
	burstGap = 25 * microsecond
	minBurst = 16
	// burstEnd is the pause that ends a burst. It is longer than burstGap, because the
	// sending process may have to wait for a processor.
	burstEnd = 1000 * microsecond
	// maxBatchDelay is how long a message waits for others, and maxGathered how many
	// bytes wait, counted like OutboxBytes.
	maxBatchDelay = 250 * microsecond
	maxGathered   = 20 << 10
	// maxBatchBytes bounds a batch, because a program that retains one message retains
	// its batch. maxBatchMessages bounds the messages in it, and maxBatchedMessage the
	// length of each.
	maxBatchBytes     = 8 << 10
	maxBatchMessages  = 128
	maxBatchedMessage = slabSize / 4
)

// burst is a root's record of how its messages arrive.
type burst struct {
	waiting  int           // segments that waited at the last look
	wrote    protocol.Time // when the last message came or, after its step, was sent
	stepping bool          // that message's step has not ended
	emitted  protocol.Time // when the last segment was sent
	streak   int           // messages of the burst so far
	batching bool          // segments wait only for others
	flush    bool          // send without batching until nothing waits
}

// shouldBatch reports whether the waiting segments should wait for others.
func (m *Member) shouldBatch(now protocol.Time) bool {
	o := &m.own
	b := &o.burst
	if n := o.waiting.Len(); n != b.waiting {
		if gap := now - b.wrote; gap > burstEnd || gap > burstGap && b.streak <= minBurst {
			b.streak = 0
		}
		b.streak++
		b.waiting, b.wrote, b.stepping = n, now, true
	}
	due := b.emitted + maxBatchDelay
	if b.flush || b.streak <= minBurst || o.bytes >= maxGathered || now >= due ||
		!o.waiting.At(o.waiting.Len()-1).small() {
		return false
	}
	m.due = min(m.due, due)
	return true
}

// Settle ends a step, in which all frames were sent: the program can write again.
func (m *Member) Settle(now protocol.Time) {
	if b := &m.own.burst; b.stepping {
		b.wrote, b.stepping = now, false
	}
}

// FlushBatch sends everything that can be sent: no segment waits for others any longer.
func (m *Member) FlushBatch() { m.own.burst.flush, m.own.burst.batching = true, false }

// small reports whether a segment may be part of a batch.
func (s *segment) small() bool {
	return s.begins && s.remaining == 0 && !s.batch && !s.traced && len(s.payload()) <= maxBatchedMessage
}

// fits reports whether a segment may be part of a batch that begins with another one.
func (s *segment) fits(first *segment) bool { return s.small() && s.labeled == first.labeled }

// nextBatch removes the next segment to send, and counts the messages that begin in it.
// Small ones that follow each other become one batch, of at most so many bytes. The
// messages of a batch all have labels, or none has.
func (o *ownStream) nextBatch(frames *slab, most int) (seg segment, begun uint32) {
	seg = o.pop()
	if seg.begins {
		begun = 1
	}
	if !seg.small() || o.waiting.Len() == 0 || !o.waiting.At(0).fits(&seg) {
		return seg, begun
	}
	head := headSizeOf(0)
	b := appendMessage(make([]byte, head, head+maxBatchBytes), &seg)
	for ; begun < maxBatchMessages && o.waiting.Len() > 0; begun++ {
		following := o.waiting.At(0)
		if !following.fits(&seg) || len(b)+binary.MaxVarintLen16+len(following.payload()) > head+most {
			break
		}
		b = appendMessage(b, following)
		o.pop()
	}
	return segment{begins: true, batch: true, labeled: seg.labeled, batched: int(begun), frame: frames.join(b, nil)}, begun
}

// appendMessage appends a message to a batch: its length as a varint, then its bytes.
func appendMessage(batch []byte, s *segment) []byte {
	return append(binary.AppendUvarint(batch, uint64(len(s.payload()))), s.payload()...)
}

// split calls f with each message of a batch. It returns an error if the batch is
// malformed or has too many messages: each costs more memory than its bytes.
func split(batch []byte, f func(message []byte)) error {
	for count := 0; len(batch) > 0; count++ {
		size, n := binary.Uvarint(batch)
		switch {
		case n <= 0 || size > uint64(len(batch)-n):
			return fmt.Errorf("%w: a batch that is cut off", ErrFrame)
		case count == maxBatchMessages:
			return fmt.Errorf("%w: a batch of more than %d messages", ErrFrame, maxBatchMessages)
		}
		end := n + int(size)
		f(batch[n:end:end])
		batch = batch[end:]
	}
	return nil
}
