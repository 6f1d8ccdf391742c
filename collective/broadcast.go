package collective

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Broadcast returns the root's elements to all. The input of other tasks is ignored.
func Broadcast[T any](ctx context.Context, c Communicator, root int, in []T, options ...Option) ([]T, error) {
	s := engine.Signature{
		Kind: engine.Broadcast, Root: root, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T]()),
	}
	v, err := newInvocation[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := c.comm().checkRoot(root); err != nil {
		return nil, err
	}
	err = c.comm().do(ctx, s, func(t *engine.Task) error {
		if t.ID != root {
			return v.receiveBroadcast(t, root)
		}
		in, err := v.input(t)
		if err != nil {
			return err
		}
		if err := v.sendBroadcast(t, any(in).([]T)); err != nil {
			return err
		}
		v.deliver(t, in)
		return nil
	})
	return result(v.out, err)
}

// A short broadcast goes down a binomial tree as a whole. Of a long one, the tree carries
// the total length and a first segment. The other segments follow along a chain, from the
// root to the next task and so on, so that no task sends them more than once. Payloads are
// forwarded without a copy.

// sendBroadcast runs the root's part.
func (v *invocation[T, In, Out]) sendBroadcast(t *engine.Task, in []T) error {
	b := bytesOf(in)
	if !v.isRaw() {
		var err error
		b, err = v.encode(in)
		if err != nil {
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
	if err := sendDown(t, t.ID, buffer.Payload()); err != nil || first == len(b) || t.N == 1 {
		return err
	}
	return segments(len(b)-first, t.Thresholds().Segment, func(number int, s span) error {
		buffer := t.NewBuffer(s.to - s.from)
		defer buffer.Release()
		copy(buffer.Bytes, b[first+s.from:])
		return t.SendPayload((t.ID+1)%t.N, 1+number, buffer.Payload())
	})
}

// receiveBroadcast runs the part of all other tasks.
func (v *invocation[T, In, Out]) receiveBroadcast(t *engine.Task, root int) error {
	p, err := receiveDown(t, root)
	if err != nil {
		return err
	}
	length, first, err := lengthOf(p.Bytes)
	if err != nil {
		return err
	}
	var out []T
	var encoded []byte
	take := func(b []byte) error {
		if !v.isRaw() {
			encoded = append(encoded, b...)
			return nil
		}
		elements, err := v.decode(b)
		out = append(out, elements...)
		return err
	}
	if v.isRaw() {
		out = v.resultBuffer(t, int(min(length, maxPrealloc))/v.bytes(1))[:0]
	}
	err = take(first)
	p.Release()
	if err == nil && uint64(len(first)) < length {
		err = receiveChain(t, root, length-uint64(len(first)), take)
	}
	if err == nil && !v.isRaw() {
		out, err = v.decode(encoded)
	}
	if err != nil {
		return err
	}
	v.deliver(t, any(out).(Out))
	return nil
}

// maxPrealloc limits the memory that is allocated because a length was announced.
const maxPrealloc = 64 << 20

// receiveChain receives segments of length bytes in all from the previous task, and
// forwards them to the next one.
func receiveChain(t *engine.Task, root int, length uint64, take func([]byte) error) error {
	for step, at := 1, uint64(0); at < length; step++ {
		p, err := t.ReceivePayload((t.ID-1+t.N)%t.N, step)
		if err != nil {
			return err
		}
		at += uint64(len(p.Bytes))
		if at > length || len(p.Bytes) == 0 {
			return fmt.Errorf("%w: a broadcast of %[3]d bytes continues at byte %[2]d", engine.ErrMessage, at, length)
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

// lengthOf splits the total length off the first segment.
func lengthOf(first []byte) (uint64, []byte, error) {
	if len(first) < 8 {
		return 0, nil, fmt.Errorf("%w: a broadcast that begins with %d bytes", engine.ErrMessage, len(first))
	}
	length, first := binary.BigEndian.Uint64(first), first[8:]
	if length > maxBytes || length < uint64(len(first)) {
		return 0, nil, fmt.Errorf("%w: a broadcast of %d bytes", engine.ErrMessage, length)
	}
	return length, first, nil
}

// maxBytes limits a broadcast. A longer one is malformed.
const maxBytes = 1 << 40

// sendDown sends the root's payload down the tree.
func sendDown(t *engine.Task, root int, p engine.Payload) error {
	if t.Thresholds().Levels.Broadcast {
		return sendDownLevels(t.Teams(root), p)
	}
	return passDown(t, root, p)
}

// receiveDown receives a payload from a task's parent, and passes it on to its children.
func receiveDown(t *engine.Task, root int) (engine.Payload, error) {
	if t.Thresholds().Levels.Broadcast {
		return receiveDownLevels(t.Teams(root))
	}
	p, err := t.ReceivePayload(parent(t, root), 0)
	if err != nil {
		return p, err
	}
	return p, passDown(t, root, p)
}

// parent returns a task's parent in the tree.
func parent(t *engine.Task, root int) int {
	vrank := (t.ID - root + t.N) % t.N // virtual rank: relative to the root
	return (vrank&(vrank-1) + root) % t.N
}

// passDown sends a payload to a task's children, to the one with the largest subtree first.
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
