package collective

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Broadcast returns the root's elements everywhere. Others than the root may give
// nil.
func Broadcast[T any](ctx context.Context, w World, root int, in []T, options ...Option) ([]T, error) {
	s := signature{kind: broadcasting, root: root, length: noLength, detail: detailOf(typeName[T]())}
	j, err := newJob[T, []T, []T](&s, in, options)
	if err != nil {
		return nil, err
	}
	if err := w.place().checkRoot(root); err != nil {
		return nil, err
	}
	err = w.place().do(ctx, s, func(t *task) error {
		if t.id != root {
			return j.receiveBroadcast(t, root)
		}
		in, err := j.input(t)
		if err != nil {
			return err
		}
		b, err := j.encode(in)
		if err != nil {
			return err
		}
		if _, err = spread(t, root, b); err == nil {
			j.deliver(t, in)
		}
		return err
	})
	return result(j.out, err)
}

// receiveBroadcast is the part of all but the root.
func (j *job[T, In, Out]) receiveBroadcast(t *task, root int) error {
	b, err := spread(t, root, nil)
	if err != nil {
		return err
	}
	out, err := j.decode(b)
	if err != nil {
		return err
	}
	j.deliver(t, any(out).(Out))
	return nil
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
func (p Place) checkRoot(root int) error {
	if root < 0 || root >= p.Size() {
		return fmt.Errorf("collective: root %d: choose 0 to %d", root, p.Size()-1)
	}
	return nil
}

// spread sends bytes down a binomial tree, in pieces. The first says how long
// they are. It returns them, in memory that is the task's alone.
func spread(t *task, root int, b []byte) ([]byte, error) {
	first, whole := b[:min(len(b), pipeline)], b
	if t.id == root {
		first = append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(first)), uint64(len(b))), first...)
	}
	first, err := pass(t, root, 0, first)
	if err != nil {
		return nil, err
	}
	length, first, err := lengthOf(first)
	if err != nil {
		return nil, err
	}
	if t.id != root {
		whole = append(make([]byte, 0, min(length, 64<<20)), first...)
	}
	for step, at := 1, len(first); uint64(at) < length; step++ {
		var piece []byte
		if t.id == root {
			piece = b[at:min(len(b), at+pipeline)]
		}
		if piece, err = pass(t, root, step, piece); err != nil {
			return nil, err
		}
		if at += len(piece); uint64(at) > length || len(piece) == 0 {
			return nil, fmt.Errorf("%w: a broadcast of %d bytes has %d", ErrMessage, length, at)
		}
		if t.id != root {
			whole = append(whole, piece...)
		}
	}
	return whole, nil
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

// pass passes one piece down the tree: it comes from the parent, if there is
// one, and goes to the children, the one with the largest subtree first.
func pass(t *task, root, step int, piece []byte) (_ []byte, err error) {
	place := (t.id - root + t.n) % t.n // in the tree, whose root is 0
	mask := 1
	for ; mask < t.n; mask *= 2 {
		if place&mask != 0 {
			if piece, err = t.receive((place-mask+root)%t.n, step); err != nil {
				return nil, err
			}
			break
		}
	}
	for mask /= 2; mask > 0; mask /= 2 {
		if child := place + mask; child < t.n {
			if err := t.send((child+root)%t.n, step, piece); err != nil {
				return nil, err
			}
		}
	}
	return piece, nil
}
