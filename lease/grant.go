package lease

// Leases for clients of a process, which renew them themselves: a client that hangs, or is cut off
// from the process, loses its lease.

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/services/leases"
)

// Grant takes a lease for a client of this process, as [Leases.Acquire] does, and returns its
// token. The holder is a name that [Leases.Holder] shows. If ttl is zero, it is Config.TTL. This
// process does not renew the lease. The client does, by [Leases.Renew] of any process of the group,
// and counts the TTL from before it has asked for that: so it renews once before it relies on the
// lease.
func (l *Leases) Grant(ctx context.Context, name, holder string, ttl time.Duration) (token uint64, err error) {
	ttl = cmp.Or(ttl, l.config.TTL)
	err = l.retry(ctx, name, ttl, func() error {
		token, _, err = l.take(ctx, name, holder, ttl)
		return err
	})
	return token, err
}

// TryGrant is Grant for a lease that is free or has expired. It returns [ErrHeld] or [ErrEarly]
// otherwise, and is linearizable as [Leases.TryAcquire] is.
func (l *Leases) TryGrant(ctx context.Context, name, holder string, ttl time.Duration) (token uint64, err error) {
	token, _, err = l.takeNow(ctx, name, holder, cmp.Or(ttl, l.config.TTL))
	return token, err
}

// Renew renews the lease of a token. It returns [ErrExpired] if another holder has it, or none.
func (l *Leases) Renew(ctx context.Context, name string, token uint64) error {
	return l.command(ctx, &leases.Command{Op: leases.Renew, Name: name, Entry: leases.Entry{Token: token}})
}

// Release releases the lease of a token. It returns [ErrExpired] if another holder has it, or
// none.
func (l *Leases) Release(ctx context.Context, name string, token uint64) error {
	return l.command(ctx, &leases.Command{Op: leases.Release, Name: name, Entry: leases.Entry{Token: token}})
}

func (l *Leases) command(ctx context.Context, c *leases.Command) error {
	v, _, err := l.propose(ctx, c)
	if err == nil && v != leases.OK {
		err = ErrExpired
	}
	if err != nil {
		return fmt.Errorf("lease: %q: %w", c.Name, err)
	}
	return nil
}

// Held is a lease of a group.
type Held struct {
	Name string
	Holder
	TTL time.Duration
	// Expired says that this process would take it over: its holder is gone.
	Expired bool
}

// List returns the leases of the group that were given, in order of their names. It is
// linearizable.
func (l *Leases) List(ctx context.Context) (all []Held, err error) {
	err = l.group.Read(ctx, func() {
		l.table.use(func(now leases.Time, state *leases.Table) {
			for _, name := range state.Names() {
				e, wait, _ := state.Look(now, name)
				all = append(all, Held{name, Holder{e.Holder, e.Token}, time.Duration(e.TTL), wait <= 0})
			}
		})
	})
	return all, err
}
