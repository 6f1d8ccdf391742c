package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// A batch is a segment that is several small messages. A program that broadcasts
// many of them in a row would have every member pass on, number and keep each one
// alone, which costs more than all else. So in a burst, and only then, messages
// wait for each other a moment: one alone, or a few, are never held up.

const (
	// burstGap is how soon after another a message comes in a burst, and
	// burstAfter how many do before it is taken for one.
	burstGap = 25 * microsecond
	minBurst = 16
	// burstEnd is how long nothing comes when a burst is over. It is longer: who
	// broadcasts one after the other may have to wait for its processor.
	burstEnd = 1000 * microsecond
	// gatherFor is how long a burst's messages wait for more, and gatherBytes how
	// much waits at most, counted like OutboxBytes.
	maxBatchDelay = 250 * microsecond
	maxGathered   = 8 << 10
	// batchBytes is how long a batch is at most, because a message that is held
	// on to holds its batch too; batchMessages how many are in it, and batchMost
	// how long each.
	maxBatchBytes     = slabSize
	maxBatchMessages  = 128
	maxBatchedMessage = maxBatchBytes / 4
)

// burst is what a root knows of how its messages come.
type burst struct {
	waiting  int           // as last looked at
	wrote    protocol.Time // when the last one came
	emitted  protocol.Time // when the last segment went
	streak   int           // how many have come in a row
	batching bool          // what waits, waits for more
	flush    bool          // until nothing waits, nothing gathers
}

// gathers reports whether what waits had better wait for more.
func (m *Member) shouldBatch(now protocol.Time) bool {
	o := &m.own
	b := &o.burst
	if n := o.waiting.Len(); n != b.waiting {
		if gap := now - b.wrote; gap > burstEnd || gap > burstGap && b.streak <= minBurst {
			b.streak = 0
		}
		b.streak++
		b.waiting, b.wrote = n, now
	}
	due := b.emitted + maxBatchDelay
	if b.flush || b.streak <= minBurst || o.bytes >= maxGathered || now >= due || !o.waiting.At(o.waiting.Len()-1).small() {
		return false
	}
	m.due = min(m.due, due)
	return true
}

// FlushBatch has everything sent that can be: nothing waits for more any longer.
func (m *Member) FlushBatch() { m.own.burst.flush, m.own.burst.batching = true, false }

// small reports whether a segment may be part of a batch.
func (s *segment) small() bool {
	return s.begins && s.remaining == 0 && !s.batch && len(s.payload()) <= maxBatchedMessage
}

// gathered takes the next segment to send out of those that wait: several small
// ones as one.
func (o *ownStream) nextBatch(frames *slab) segment {
	seg := o.pop()
	if !seg.small() || o.waiting.Len() == 0 || !o.waiting.At(0).small() {
		return seg
	}
	b := appendMessage(make([]byte, headSize, headSize+maxBatchBytes), &seg)
	for n := 1; n < maxBatchMessages && o.waiting.Len() > 0; n++ {
		following := o.waiting.At(0)
		if !following.small() || len(b)+binary.MaxVarintLen16+len(following.payload()) > cap(b) {
			break
		}
		b = appendMessage(b, following)
		o.pop()
	}
	return segment{begins: true, batch: true, frame: frames.join(b, nil)}
}

// appendMessage adds a message to a batch: its length, and itself.
func appendMessage(batch []byte, s *segment) []byte {
	return append(binary.AppendUvarint(batch, uint64(len(s.payload()))), s.payload()...)
}

// split calls f with each message of a batch. It returns an error if there is
// anything else in it, or too many: each costs more than its bytes.
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
