package pleach

import (
	"context"
	"errors"

	"github.com/pleach-go/pleach/stream"
)

// Rejoin closes this group and joins it again, with the identity and address this
// process has had, so that it gets its old rank if nobody else has it: what to do
// after [ErrEvicted]. It asks those who were in the last view this process knows.
// Config.Transport and Config.Detectors have ended with the group, and are not used
// again.
func (g *Group) Rejoin(ctx context.Context) (*Group, error) {
	if g.parts.views == nil {
		return nil, g.failed("rejoin", ErrFixed)
	}
	if err := g.Close(); err != nil {
		return nil, g.failed("rejoin", err)
	}
	c := g.config
	c.Addresses, c.Found, c.Transport, c.Detectors, c.Seeds = nil, false, nil, nil, nil
	for _, m := range g.View().Members {
		if m.Rank == g.Rank() {
			c.Identity, c.Address = m.Identity, m.Address
		} else {
			c.Seeds = append(c.Seeds, m.Address)
		}
	}
	if len(c.Seeds) == 0 {
		return nil, g.failed("rejoin", errors.New("nobody else was in the last view"))
	}
	limits := c.Stream
	c.Stream = stream.Config{
		Shape: limits.Shape, SegmentSize: limits.SegmentSize, InlineSize: limits.InlineSize, MaxMessage: limits.MaxMessage,
		KeepBytes: limits.KeepBytes, InboxBytes: limits.InboxBytes, OutboxBytes: limits.OutboxBytes,
	}
	return Join(ctx, c)
}
