package collective

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Broadcast returns the root's elements everywhere. Others than the root may give
// nil.
func Broadcast[T any](ctx context.Context, c Communicator, root int, in []T, options ...Option) ([]T, error) {
	s := engine.Signature{Kind: engine.Broadcast, Root: root, Length: engine.NoLength, Detail: detailOf(typeName[T]())}
	j, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkRoot(root); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if t.ID != root {
			return j.receiveBroadcast(t, root)
		}
		in, err := j.input(t)
		if err != nil {
			return err
		}
		if err := j.sendBroadcast(t, any(in).([]T)); err != nil {
			return err
		}
		j.deliver(t, in)
		return nil
	})
	return result(j.out, err)
}

// result is what a call returns: nothing if it has failed.
func result[Out any](out Out, err error) (Out, error) {
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}

// checkRoot refuses a root that is no task.
func (p Comm) checkRoot(root int) error {
	if root < 0 || root >= p.Size() {
		return fmt.Errorf("collective: root %d: choose 0 to %d", root, p.Size()-1)
	}
	return nil
}

// What is broadcast goes down a binomial tree, as a whole if it is short. Else the
// tree carries a first piece, which says how long it is, and the rest follows piece
// by piece along a chain, from the root to the next task and so on: nobody sends it
// more than once. Pages are passed on as they have come.

// sendBroadcast is the root's part.
func (j *invocation[T, In, Out]) sendBroadcast(t *engine.Task, in []T) error {
	b := bytesOf(in)
	if !j.isRaw() {
		var err error
		if b, err = j.encode(in); err != nil {
			return err
		}
	}
	first := len(b)
	if first > t.Thresholds().Tree {
		first = min(t.Thresholds().Segment, first/2) &^ 15 // whole elements, whatever they are
	}
	buffer := t.NewBuffer(8 + first)
	defer buffer.Release()
	binary.BigEndian.PutUint64(buffer.Bytes, uint64(len(b)))
	copy(buffer.Bytes[8:], b)
	if err := passDown(t, t.ID, buffer.Payload()); err != nil || first == len(b) || t.N == 1 {
		return err
	}
	return pieces(len(b)-first, t.Thresholds().Segment, func(number int, s span) error {
		buffer := t.NewBuffer(s.to - s.from)
		defer buffer.Release()
		copy(buffer.Bytes, b[first+s.from:])
		return t.SendPayload((t.ID+1)%t.N, 1+number, buffer.Payload())
	})
}

// receiveBroadcast is the part of all others.
func (j *invocation[T, In, Out]) receiveBroadcast(t *engine.Task, root int) error {
	p, err := t.ReceivePayload(parent(t, root), 0)
	if err != nil {
		return err
	}
	if err := passDown(t, root, p); err != nil {
		return err
	}
	length, first, err := lengthOf(p.Bytes)
	if err != nil {
		return err
	}
	var out []T
	var encoded []byte
	take := func(b []byte) error {
		if !j.isRaw() {
			encoded = append(encoded, b...)
			return nil
		}
		elements, err := j.decode(b)
		out = append(out, elements...)
		return err
	}
	if j.isRaw() {
		out = j.resultBuffer(t, int(min(length, atOnce))/j.bytes(1))[:0]
	}
	err = take(first)
	p.Release()
	if err == nil && uint64(len(first)) < length {
		err = receiveChain(t, root, length-uint64(len(first)), take)
	}
	if err == nil && !j.isRaw() {
		out, err = j.decode(encoded)
	}
	if err != nil {
		return err
	}
	j.deliver(t, any(out).(Out))
	return nil
}

// atOnce is how much room is made because a length was announced.
const atOnce = 64 << 20

// receiveChain takes pieces from the task before, so many bytes in all, and passes
// them on to the one behind.
func receiveChain(t *engine.Task, root int, length uint64, take func([]byte) error) error {
	for step, at := 1, uint64(0); at < length; step++ {
		p, err := t.ReceivePayload((t.ID-1+t.N)%t.N, step)
		if err != nil {
			return err
		}
		if at += uint64(len(p.Bytes)); at > length || len(p.Bytes) == 0 {
			return fmt.Errorf("%w: a broadcast goes on for %d bytes of %d", ErrMessage, at, length)
		}
		if next := (t.ID + 1) % t.N; next != root {
			if err := t.SendPayload(next, step, p); err != nil {
				return err
			}
		}
		if err := take(p.Bytes); err != nil {
			return err
		}
		p.Release()
	}
	return nil
}

// lengthOf reads what is in front of the first piece.
func lengthOf(first []byte) (uint64, []byte, error) {
	if len(first) < 8 {
		return 0, nil, fmt.Errorf("%w: a broadcast that begins with %d bytes", ErrMessage, len(first))
	}
	length, first := binary.BigEndian.Uint64(first), first[8:]
	if length > maxBytes || length < uint64(len(first)) {
		return 0, nil, fmt.Errorf("%w: a broadcast of %d bytes", ErrMessage, length)
	}
	return length, first, nil
}

// maxBytes is the longest that is sent from one task to another in a call.
const maxBytes = 1 << 40

// parent is from whom a task gets what goes down the tree.
func parent(t *engine.Task, root int) int {
	vrank := (t.ID - root + t.N) % t.N // in the tree, whose root is 0
	return (vrank&(vrank-1) + root) % t.N
}

// passDown passes a page down the tree, to the child with the largest subtree first.
func passDown(t *engine.Task, root int, p engine.Payload) error {
	vrank := (t.ID - root + t.N) % t.N
	mask := 1
	for mask < t.N && vrank&mask == 0 {
		mask *= 2
	}
	for mask /= 2; mask > 0; mask /= 2 {
		if child := vrank + mask; child < t.N {
			if err := t.SendPayload((child+root)%t.N, 0, p); err != nil {
				return err
			}
		}
	}
	return nil
}
