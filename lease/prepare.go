package lease

// A table that begins asks the members of the view for the floors of their tokens.

import (
	"cmp"
	"context"
	"time"

	"github.com/pleach-go/pleach/internal/services/leases"
)

// Pauses of a process that prepares a table.
const (
	memberPause = 50 * time.Millisecond // before it looks at the view again
	failedPause = time.Second           // after an error
)

// floor returns a number that new tokens are not below, as far as this process knows.
func (l *Leases) floor() uint64 { return max(l.config.TokenFloor(), l.table.floor()) }

// prepare waits until the table knows the base of its tokens.
func (l *Leases) prepare(ctx context.Context) error {
	if _, _, prepared := l.next(); prepared {
		return nil
	}
	select {
	case l.preparing <- struct{}{}:
		defer func() { <-l.preparing }()
	case <-ctx.Done():
		return l.waited(ctx)
	}
	for {
		changed := l.table.changed.Wait()
		c, wait, prepared := l.next()
		switch {
		case prepared:
			return nil
		case wait == 0:
			if _, _, err := l.propose(ctx, &c); err != nil {
				return err
			}
			continue
		}
		select {
		case <-l.after(min(wait, memberPause)):
		case <-changed:
		case <-l.ended:
			return l.waited(ctx)
		case <-ctx.Done():
			return l.waited(ctx)
		}
	}
}

// waited returns why a process could not wait any longer, as the group's calls do.
func (l *Leases) waited(ctx context.Context) error {
	return cmp.Or(l.group.Read(ctx, func() {}), ctx.Err())
}

// next returns what this process does next to prepare the table.
func (l *Leases) next() (c leases.Command, wait time.Duration, prepared bool) {
	l.table.use(func(_ leases.Time, state *leases.Table) { prepared = state.Base() > 0 })
	if prepared {
		return c, 0, true
	}
	self, members := l.members()
	floor := l.floor()
	l.table.use(func(now leases.Time, state *leases.Table) {
		var left leases.Time
		c, left, prepared = state.Prepare(now, self, floor, members)
		wait = time.Duration(left)
	})
	return c, wait, prepared
}

// keepPrepared prepares the table, and every one that replaces it, until the replica has ended:
// processes that take no lease have floors, too.
func (l *Leases) keepPrepared() {
	for {
		changed := l.table.changed.Wait()
		var again <-chan time.Time
		if l.prepare(context.Background()) != nil {
			again = l.after(failedPause)
		}
		select {
		case <-changed:
		case <-again:
		case <-l.ended:
			return
		}
	}
}
