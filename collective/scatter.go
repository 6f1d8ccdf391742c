package collective

import (
	"context"
	"fmt"
)

// Scatter returns to each task its part of what the root has given, by task. The
// parts' lengths may differ. Others than the root may give nil.
func Scatter[T any](ctx context.Context, w Communicator, root int, parts [][]T, options ...Option) ([]T, error) {
	s := signature{kind: scattering, root: root, length: noLength, detail: detailOf(typeName[T]())}
	j, err := newInvocation[T, [][]T, []T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	p := w.comm()
	if err := p.checkRoot(root); err != nil {
		return nil, err
	}
	if p.Rank() == root {
		if err := p.checkParts(len(parts)); err != nil {
			return nil, err
		}
	}
	err = p.do(ctx, s, func(t *task) error {
		var blocks [][]byte
		var err error
		if t.id == root {
			if blocks, err = j.partBlocks(t); err != nil {
				return err
			}
		}
		mine, err := deal(t, root, blocks)
		if err != nil {
			return err
		}
		part, err := j.decode(mine)
		if err == nil {
			j.deliver(t, part)
		}
		return err
	})
	return result(j.out, err)
}

// checkParts refuses what is not one part for each task.
func (p Comm) checkParts(parts int) error {
	if parts != p.Size() {
		return fmt.Errorf("collective: %d parts for %d tasks", parts, p.Size())
	}
	return nil
}

// givenParts is a task's input, which must not be changed.
func (j *invocation[T, In, Out]) inputParts(t *task) ([][]T, error) {
	in, err := j.input(t)
	if err != nil {
		return nil, err
	}
	parts := any(in).([][]T)
	if len(parts) != t.n {
		return nil, &RestoreError{Task: t.id, Call: t.call.number, Err: fmt.Errorf("it has %d parts for %d tasks", len(parts), t.n)}
	}
	return parts, nil
}

// partBlocks returns a task's input, part by part.
func (j *invocation[T, In, Out]) partBlocks(t *task) ([][]byte, error) {
	parts, err := j.inputParts(t)
	if err != nil {
		return nil, err
	}
	blocks := make([][]byte, t.n)
	for i, part := range parts {
		if blocks[i], err = j.encode(part); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// deal brings blocks down a binomial tree: a child gets those of its subtree. It
// returns the task's own.
func deal(t *task, root int, blocks [][]byte) ([]byte, error) {
	vrank := (t.id - root + t.n) % t.n
	mask := 1
	for ; mask < t.n; mask *= 2 {
		if vrank&mask == 0 {
			continue
		}
		b, err := t.receive((vrank-mask+root)%t.n, mask)
		if err != nil {
			return nil, err
		}
		if blocks, err = cutBlocks(b, t.n); err != nil {
			return nil, err
		}
		break
	}
	for mask /= 2; mask > 0; mask /= 2 {
		var b []byte
		for p := vrank + mask; p < min(vrank+2*mask, t.n); p++ {
			task := (p + root) % t.n
			b = appendBlock(b, task, blocks[task])
		}
		if vrank+mask < t.n {
			if err := t.send((vrank+mask+root)%t.n, mask, b); err != nil {
				return nil, err
			}
		}
	}
	return blocks[t.id], nil
}
