package pleach

import (
	"context"

	"github.com/pleach-go/pleach/protocol"
)

// SetMeta changes what this process tells the others about itself ([Member.Meta]), 512
// bytes at most. It blocks until a view has it, and all members of that view see the same
// then. If ctx ends first, a later view may still have it. Each change is a view change, so
// it is for what changes rarely.
func (g *Group) SetMeta(ctx context.Context, meta string) error {
	s := g.session()
	return s.wrap("set meta", s.setMeta(ctx, meta))
}

func (g *session) setMeta(ctx context.Context, meta string) error {
	if g.machine.Static() {
		return ErrStatic
	}
	select {
	case g.metaLock <- struct{}{}:
		defer func() { <-g.metaLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var refused error
	if err := g.node.Do(func(now protocol.Time) { refused = g.inputs.SetMeta(now, meta) }); err != nil {
		return ErrClosed
	}
	for refused == nil {
		changed := g.changed.Wait()
		if g.Self().Meta == meta {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
	return refused
}
