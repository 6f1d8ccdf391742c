package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

const (
	// closeTimeout bounds how long Close waits for the group to let this process go.
	closeTimeout = time.Second
	// abortTimeout bounds how long Abort waits for goroutines of the group to end, while this
	// process runs.
	abortTimeout = 900 * time.Millisecond
	// abortTick is how often it looks whether it runs.
	abortTick = 10 * time.Millisecond
)

// Leave departs gracefully: it blocks until the other members have installed a
// view without this process, or ctx ends. Without a quorum there is no such view, and
// it blocks until ctx ends. Call Close afterwards to release the resources.
//
// With Config.Recovery.Rejoin, a process that leaves does not join again. One that is about to join
// again stays out.
func (g *Group) Leave(ctx context.Context) error {
	g.callOff(ErrLeft)
	s := g.session()
	if g.config.Recovery.Rejoin && s.Err() != nil && !g.goesOn(ctx, s, nil, nil) {
		if err := g.Err(); !errors.Is(err, ErrLeft) {
			return s.wrap("leave", cmp.Or(err, ctx.Err()))
		}
		return nil
	}
	return g.session().leave(ctx)
}

func (g *session) leave(ctx context.Context) error {
	if g.machine.Static() {
		return g.wrap("leave", ErrStatic)
	}
	if err := g.sender.flush(ctx); err != nil && g.Err() == nil {
		return g.wrap("leave", fmt.Errorf("broadcasts are not sent yet: %w", err))
	}
	if err := g.direct.flushDirect(ctx); err != nil && g.sendErr() == nil {
		return g.wrap("leave", fmt.Errorf("messages to single members have not arrived yet: %w", err))
	}
	if err := g.node.Do(g.machine.Leave); err != nil {
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
// seconds, with a [*StuckError] if a function of the program still runs then. Further calls
// do nothing.
func (g *Group) Close() error {
	if g.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		within(ctx, func() {
			if s := g.session(); s.machine.Static() {
				_ = s.sender.flush(ctx)
			} else {
				_ = g.Leave(ctx) // on failure, the others see a crash, as documented
			}
		})
	}
	return g.Abort()
}

// Abort stops immediately without notifying the group; the other members see a
// crash. It releases all resources and returns within a second, or later if this process is starved
// of CPU, or when the disk has taken what is being saved (Config.Recovery.DataDir). If a function
// of the program still runs then, such as Config.OnMessage, the error is a [*StuckError].
func (g *Group) Abort() error {
	ctx, cancel := withRunningTime(abortTimeout)
	defer cancel()
	g.callOff(ErrClosed)
	err := g.session().abort(ctx)
	if !within(ctx, g.driver.Wait) && err == nil {
		err = g.session().stuck()
	}
	err = errors.Join(err, g.session().abort(ctx)) // it may have joined again just before
	g.end(ErrClosed)
	return err
}

// withRunningTime returns a context that ends when this process has had so much time to run. A
// process that is starved of CPU gets its ticks late, and its goroutines end late without being
// stuck.
func withRunningTime(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	ticker := time.NewTicker(abortTick)
	go func() {
		defer ticker.Stop()
		defer cancel()
		for last, left := time.Now(), d; left > 0; {
			select {
			case now := <-ticker.C:
				left -= min(now.Sub(last), 2*abortTick)
				last = now
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// within calls f on another goroutine, and reports whether f has returned before ctx ended.
func within(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *session) abort(ctx context.Context) error {
	var err error
	g.ending.closing.Do(func() {
		closed := make(chan error, 2) // release may return just after the timeout
		if !within(ctx, func() { closed <- g.release() }) {
			closed <- g.stuck()
		}
		err = <-closed
		g.end(ErrClosed)
		g.vote.Dir.Close()
	})
	return err
}

// release ends the membership, and waits for all its goroutines.
func (g *session) release() error {
	_ = g.node.Do(func(protocol.Time) { g.machine.FlushBatch() })
	g.end(ErrClosed)
	err := g.node.Close()
	g.candidates.reaching.Wait()
	g.asking.Wait()
	return errors.Join(err, g.detection.Close())
}

// StuckError is returned by [Group.Close] and [Group.Abort] when goroutines of the group have
// not ended in time. The process is no longer a member. What those goroutines hold is released
// when they end.
type StuckError struct {
	// Callback is the function of the program that has not returned, Config.OnMessage. If
	// empty, it is another one that the group was given: Dial, a detector, or a transport.
	Callback string
}

func (e *StuckError) Error() string {
	if e.Callback == "" {
		return "pleach: goroutines of the group have not ended: Config.Network.Dial, a detector or the transport does not return"
	}
	return fmt.Sprintf("pleach: %s has not returned, and its goroutine still runs", e.Callback)
}

// stuck names what has not ended.
func (g *session) stuck() error {
	if g.receiver.dispatching.Load() {
		return &StuckError{Callback: "Config.OnMessage"}
	}
	return &StuckError{}
}

// forgetVote saves that this process is no longer a member, within node.Do.
func (g *session) forgetVote() {
	v := g.view.Load()
	if err := g.vote.Dir.Leave(v, g.machine.DecisionsUpTo(v.Number)); err != nil {
		g.log.Warn("cannot save that this process is no longer a member", "cause", err)
	}
}

// endEvicted ends the membership of a process that was removed. The view that it was
// removed by may be an old one: if another process has joined with its ID since, it must
// not rejoin. So it asks the others first. It is called within node.Do.
func (g *session) endEvicted(err error) {
	if g.ending.evicted {
		return
	}
	g.ending.evicted = true
	if g.network.roster != nil {
		g.network.roster.SetView(transport.View{Number: g.view.Load().Number}) // no member is dialed any more
	}
	g.detection.Rest()
	evicted := publicError(err)
	g.removal.Store(&evicted) // Broadcast returns it already
	var e *membership.EvictedError
	if !errors.As(err, &e) || e.Successor != nil || g.config.Network.Transport != nil {
		g.endRemoved(evicted)
		return
	}
	g.asking.Go(func() {
		g.catchUp.Evicted(e.By, func(successor *membership.Member) {
			e := *e
			e.Successor = successor
			g.endRemoved(publicError(&e))
		})
	})
}

// endRemoved ends the membership and logs why.
func (g *session) endRemoved(err error) {
	var replaced *ReplacedError
	if errors.As(err, &replaced) {
		g.log.Warn("replaced", "view", replaced.By, "id", replaced.ID, "by", replaced.Address, "incarnation",
			replaced.Incarnation)
	}
	g.end(err)
}
