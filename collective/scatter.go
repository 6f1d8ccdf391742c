package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Scatter returns part i of the root's input to task i. The lengths of parts may differ. The
// input of other tasks is ignored.
func Scatter[T any](ctx context.Context, c Communicator, root int, parts [][]T, options ...Option) ([]T, error) {
	s := engine.Signature{
		Kind: engine.Scatter, Root: root, Length: engine.NoLength,
		Detail: engine.DetailOf(typeName[T]()),
	}
	v, err := newInvocation[T, [][]T, []T](&s, parts, options)
	if err != nil {
		return nil, err
	}
	p := c.comm()
	if err := p.checkRoot(root); err != nil {
		return nil, err
	}
	if p.Rank() == root {
		if err := p.checkParts(len(parts)); err != nil {
			return nil, err
		}
	}
	err = p.do(ctx, s, func(t *engine.Task) error {
		var blocks [][]byte
		var err error
		if t.ID == root {
			blocks, err = v.partBlocks(t)
			if err != nil {
				return err
			}
		}
		mine, err := deal(t, root, blocks)
		if err != nil {
			return err
		}
		part, err := v.decode(mine)
		if err == nil {
			v.deliver(t, part)
		}
		return err
	})
	return result(v.out, err)
}

// partBlocks returns a task's parts, encoded.
func (v *invocation[T, In, Out]) partBlocks(t *engine.Task) ([][]byte, error) {
	parts, err := v.inputParts(t)
	if err != nil {
		return nil, err
	}
	blocks := make([][]byte, t.N)
	for i, part := range parts {
		blocks[i], err = v.encode(part)
		if err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// deal sends blocks down a binomial tree: a child gets those of its subtree. It returns the
// task's own block.
func deal(t *engine.Task, root int, blocks [][]byte) ([]byte, error) {
	vrank := (t.ID - root + t.N) % t.N
	mask := 1
	for ; mask < t.N; mask *= 2 {
		if vrank&mask == 0 {
			continue
		}
		b, err := t.Receive((vrank-mask+root)%t.N, mask)
		if err != nil {
			return nil, err
		}
		blocks, err = cutBlocks(b, t.N)
		if err != nil {
			return nil, err
		}
		break
	}
	for mask /= 2; mask > 0; mask /= 2 {
		var b []byte
		for p := vrank + mask; p < min(vrank+2*mask, t.N); p++ {
			task := (p + root) % t.N
			b = appendBlock(b, task, blocks[task])
		}
		if vrank+mask < t.N {
			if err := t.Send((vrank+mask+root)%t.N, mask, b); err != nil {
				return nil, err
			}
		}
	}
	return blocks[t.ID], nil
}
