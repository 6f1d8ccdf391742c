package pleach

import (
	"context"
	"errors"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/protocol"
)

// closeTimeout bounds how long Close waits for the group to let this process go.
const closeTimeout = time.Second

// Leave departs gracefully: it blocks until the other members have installed a
// view without this process, or ctx ends. Without a quorum there is no such view, and
// it blocks until ctx ends. Call Close afterwards to release the resources.
func (g *Group) Leave(ctx context.Context) error {
	if g.machine.Static() {
		return g.wrap("leave", ErrStatic)
	}
	if err := g.flush(ctx); err != nil && g.Err() == nil {
		return g.wrap("leave", err)
	}
	if err := g.flushDirect(ctx); err != nil && g.sendErr() == nil {
		return g.wrap("leave", err)
	}
	if err := g.node.Do(g.inputs.Leave); err != nil {
		return ErrClosed
	}
	select {
	case <-g.life.Done():
		if err := g.Err(); err != ErrLeft {
			return g.wrap("leave", err)
		}
		return nil
	case <-ctx.Done():
		return g.wrap("leave", ctx.Err())
	}
}

// Close leaves the group and releases its resources. It waits at most a second
// for the other members to install a view without this process; after that they
// see a crash. [Group.Leave] waits longer and tells whether it worked. In a static
// group Close only waits until what was broadcast is sent. It returns within two
// seconds. Further calls do nothing.
func (g *Group) Close() error {
	if g.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if g.machine.Static() {
			_ = g.flush(ctx)
		} else {
			_ = g.Leave(ctx) // on failure, the others see a crash, as documented
		}
	}
	return g.Abort()
}

// Abort stops immediately without notifying the group; the other members see a
// crash. It releases all resources and returns within a second, or when the disk has taken what
// is being saved (Config.DataDir).
func (g *Group) Abort() error {
	var err error
	g.closing.Do(func() {
		_ = g.node.Do(func(protocol.Time) { g.inputs.FlushBatch() })
		g.end(ErrClosed)
		err = g.node.Close()
		g.reaching.Wait()
		g.asking.Wait()
		if g.detector != nil {
			err = errors.Join(err, g.detector.Close())
		}
		g.data.close()
	})
	return err
}

// sleep waits for a while, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Rejoin aborts this membership and joins the group again with the same ID and
// address, so that this process gets its old rank if that is free. It is what to
// do after [ErrEvicted] and [ErrTooSlow]. After [ErrReplaced], or if another process
// with its ID has joined meanwhile, it returns a [*ReplacedError]: this process stays
// out. It has missed what was sent while it was no member, unless Config.State brings it. A
// process that is removed again and again, each time within a minute, waits before it joins:
// 2 s, then twice as long each time, up to 30 s. The members of the last view that this process has seen are the seeds.
// Config.Transport ended with the group and is not used again, nor are Config.Detectors
// but those that are a [detect.Renewer].
func (g *Group) Rejoin(ctx context.Context) (*Group, error) {
	if g.machine.Static() {
		return nil, g.wrap("rejoin", ErrStatic)
	}
	if err := g.Abort(); err != nil {
		return nil, g.wrap("rejoin", err)
	}
	if errors.Is(g.Err(), ErrReplaced) {
		return nil, g.wrap("rejoin", g.Err())
	}
	backoff := g.backoff
	if err := sleep(ctx, time.Duration(backoff.Removed(protocol.Time(time.Since(g.joined))))); err != nil {
		return nil, g.wrap("rejoin", err)
	}
	c := g.config
	c.Replace = false
	c.Addresses, c.Rank, c.Transport, c.Detectors, c.StartTimeout, c.Expect = nil, 0, nil, nil, 0, 0
	for _, d := range g.config.Detectors {
		if r, ok := d.(detect.Renewer); ok {
			c.Detectors = append(c.Detectors, r.Renew())
		}
	}
	var seeds []string
	for _, m := range g.View().Members() {
		if m.Rank != g.Rank() {
			seeds = append(seeds, m.Address)
			continue
		}
		c.ID, c.Advertise, c.Listen, c.Meta = m.ID, m.Address, g.listening, m.Meta
	}
	if len(seeds) == 0 {
		return nil, g.wrap("rejoin", errors.New("the last view had no other member"))
	}
	again, err := Join(ctx, c, seeds...)
	if err != nil {
		return nil, g.wrap("rejoin", g.replacedMeanwhile(err))
	}
	again.backoff = backoff
	return again, nil
}
