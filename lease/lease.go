package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/replicated"
)

// Errors of this package.
var (
	// ErrHeld is returned by TryAcquire if another holder has the lease.
	ErrHeld = errors.New("lease: held by another")
	// ErrExpired is returned by [Lease.Err] when the lease could not be renewed in time.
	ErrExpired = errors.New("lease: expired")
	// ErrReleased is returned by [Lease.Err] after Release.
	ErrReleased = errors.New("lease: released")
	// ErrFull is returned by Acquire if 65,536 leases are held.
	ErrFull = errors.New("lease: too many leases")
)

// Config configures [New].
type Config struct {
	// Replica is this process in the group, and Machine the name that Table has in its
	// [replicated.Config]. All three are required.
	Replica *replicated.Replica
	Machine string
	Table   *Table
	// TTL is for how long a lease is valid without a renewal. The holder renews it three times
	// as often. A holder that dies keeps others out for about as long. If zero, 5 s.
	TTL time.Duration
	// Drift is by how much the rates of two processes' clocks may differ. All processes use the
	// same. If zero, 0.01, twenty times what a clock without a time server may be off.
	Drift float64
	// TokenFloor returns a number that the token of a new lease is not below, such as the time
	// of day: tokens then go on rising after all processes were started again, and have
	// forgotten the last one. If nil, the first token is 1.
	TokenFloor func() uint64
}

// Leases are the leases of a group, for one process. Its methods are safe for concurrent use.
type Leases struct {
	config Config
	group  proposer
	holder string
	after  func(time.Duration) <-chan time.Time
	table  *Table
	counters
}

// proposer is what leases need of a replica.
type proposer interface {
	Propose(ctx context.Context, machine string, command []byte) ([]byte, error)
	Read(ctx context.Context, f func()) error
}

const (
	defaultTTL   = 5 * time.Second
	defaultDrift = 0.01
	renewals     = 3 // within a TTL
)

// New returns the leases of a group. The other processes use the same machine and drift.
func New(c Config) (*Leases, error) {
	for _, check := range []struct {
		field string
		wrong bool
	}{
		{"Replica", c.Replica == nil},
		{"Machine", c.Machine == ""},
		{"Table", c.Table == nil},
		{"TTL", c.TTL < 0},
		{"Drift", c.Drift < 0 || c.Drift >= 1},
	} {
		if check.wrong {
			return nil, &pleach.ConfigError{Field: check.field, Reason: "is missing, or out of range"}
		}
	}
	return newLeases(c, c.Replica, c.Replica.Group().Self().ID, time.After), nil
}

func newLeases(c Config, group proposer, holder string, after func(time.Duration) <-chan time.Time) *Leases {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Drift == 0 {
		c.Drift = defaultDrift
	}
	c.Table.use(func(_ leases.Time, state *leases.Table) { state.Drift = c.Drift })
	return &Leases{config: c, group: group, holder: holder, after: after, table: c.Table}
}

// Acquire waits until a lease is free, or has expired, and takes it. Of several processes that
// wait, any may be the next. A name has 255 bytes at most. The caller releases the lease.
func (l *Leases) Acquire(ctx context.Context, name string) (held *Lease, err error) {
	err = l.retry(ctx, name, func() error {
		held, err = l.TryAcquire(ctx, name)
		return err
	})
	return held, err
}

// retry tries to take a lease until it is not held by another.
func (l *Leases) retry(ctx context.Context, name string, try func() error) error {
	for {
		changed := l.table.changed.Wait()
		err := try()
		if !errors.Is(err, ErrHeld) {
			return err
		}
		wait := l.config.TTL // it was taken this moment
		if h, ok := l.look(name); ok {
			wait = h.wait
		}
		select {
		case <-l.after(wait):
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("lease: %q: %w", name, ctx.Err())
		}
	}
}

// TryAcquire takes a lease if it is free or has expired, and returns [ErrHeld] otherwise.
func (l *Leases) TryAcquire(ctx context.Context, name string) (*Lease, error) {
	began := l.table.now() // before any process can see the lease
	token, err := l.take(ctx, name, l.holder, l.config.TTL)
	if err != nil {
		return nil, err
	}
	return l.keep(name, token, began), nil
}

// take takes a lease for a holder, and returns its token.
func (l *Leases) take(ctx context.Context, name, holder string, ttl time.Duration) (uint64, error) {
	if len(name) > leases.MaxName {
		return 0, fmt.Errorf("lease: a name of %d bytes is too long: %d at most", len(name), leases.MaxName)
	}
	floor := uint64(0)
	if l.config.TokenFloor != nil {
		floor = l.config.TokenFloor()
	}
	var c leases.Command
	var free bool
	l.table.use(func(now leases.Time, state *leases.Table) {
		c, free = state.Take(now, name, leases.Entry{TTL: leases.Time(ttl), Holder: holder}, floor)
	})
	if !free {
		by, _ := l.look(name)
		return 0, fmt.Errorf("%w: %q by %s", ErrHeld, name, by.Holder)
	}
	v, token, err := l.propose(ctx, &c)
	switch {
	case err != nil:
		return 0, fmt.Errorf("lease: %q: %w", name, err)
	case v == leases.Full:
		if err := l.sweep(ctx); err != nil {
			return 0, fmt.Errorf("lease: %q: %w", name, err)
		}
		return l.take(ctx, name, holder, ttl)
	case v != leases.OK:
		return 0, fmt.Errorf("%w: %q", ErrHeld, name)
	}
	return token, nil
}

// look returns a lease that is held, as this process sees it.
func (l *Leases) look(name string) (h heldLease, held bool) {
	l.table.use(func(now leases.Time, state *leases.Table) {
		var wait leases.Time
		h.Entry, wait, held = state.Look(now, name)
		h.wait = time.Duration(wait)
	})
	return h, held
}

// heldLease is a lease, and how long this process waits until it has expired that is not renewed.
type heldLease struct {
	leases.Entry
	wait time.Duration
}

// sweep removes leases that have expired, whose holders are gone. It returns [ErrFull] if there
// is none.
func (l *Leases) sweep(ctx context.Context) error {
	var expired []leases.Command
	l.table.use(func(now leases.Time, state *leases.Table) { expired = state.Expired(now) })
	full := ErrFull
	for i := range expired {
		v, _, err := l.propose(ctx, &expired[i])
		if err != nil {
			return err
		}
		if v == leases.OK {
			full = nil
		}
	}
	return full
}

func (l *Leases) propose(ctx context.Context, c *leases.Command) (leases.Verdict, uint64, error) {
	result, err := l.group.Propose(ctx, l.config.Machine, c.Encode())
	if err != nil {
		return 0, 0, err
	}
	v, token := leases.DecodeResult(result)
	l.note(c.Op, v)
	return v, token, nil
}

// Holder is a process that holds a lease.
type Holder struct {
	// ID is the process's in its group ([pleach.Member]), and Token that of the lease.
	ID    string
	Token uint64
}

// Holder returns the process that a lease was given to last. It is linearizable. The lease may
// have expired since. It reports false if the lease is free.
func (l *Leases) Holder(ctx context.Context, name string) (h Holder, ok bool, err error) {
	err = l.group.Read(ctx, func() {
		var e heldLease
		if e, ok = l.look(name); ok {
			h = Holder{e.Holder, e.Token}
		}
	})
	return h, ok, err
}

// Lease is a lease that this process holds, or has held. Its methods are safe for concurrent use.
type Lease struct {
	leases *Leases
	name   string
	token  uint64
	until  atomic.Int64 // by the table's clock
	life   context.Context
	end    context.CancelCauseFunc
	done   sync.WaitGroup
}

// keep returns a lease that was acquired, and renews it.
func (l *Leases) keep(name string, token uint64, began time.Duration) *Lease {
	held := &Lease{leases: l, name: name, token: token}
	held.until.Store(int64(began + l.config.TTL))
	held.life, held.end = context.WithCancelCause(context.Background())
	held.done.Go(held.expire)
	held.done.Go(held.renew)
	return held
}

// expire ends a lease that was not renewed in time.
func (h *Lease) expire() {
	for h.Valid() {
		select {
		case <-h.leases.after(time.Duration(h.until.Load()) - h.leases.table.now()):
		case <-h.life.Done():
		}
	}
	h.end(ErrExpired)
}

// renew renews a lease until it ends.
func (h *Lease) renew() {
	l := h.leases
	for {
		select {
		case <-l.after(l.config.TTL / renewals):
		case <-h.life.Done():
			return
		}
		began := l.table.now()
		c := leases.Command{Op: leases.Renew, Name: h.name, Entry: leases.Entry{Token: h.token}}
		switch v, _, err := l.propose(h.life, &c); {
		case err != nil: // again soon, unless it expires
		case v == leases.OK:
			h.until.Store(int64(began + l.config.TTL))
		default:
			h.end(ErrExpired)
			return
		}
	}
}

// Name returns the name of the lease.
func (h *Lease) Name() string { return h.name }

// Token returns the fencing token: higher than that of every earlier lease of the group.
func (h *Lease) Token() uint64 { return h.token }

// Valid reports whether this process holds the lease at this moment, by its clock. A process
// looks before each thing that only the holder may do.
func (h *Lease) Valid() bool {
	return h.life.Err() == nil && h.leases.table.now() < time.Duration(h.until.Load())
}

// Done returns a channel that is closed when the lease has ended. A process that was stopped may
// see Valid report so before.
func (h *Lease) Done() <-chan struct{} { return h.life.Done() }

// Err returns nil while the lease is held, and then [ErrExpired] or [ErrReleased].
func (h *Lease) Err() error {
	if h.life.Err() == nil {
		return nil
	}
	return context.Cause(h.life)
}

// Release ends the lease, and lets another process have it at once. If it returns an error, the
// others wait until it has expired.
func (h *Lease) Release(ctx context.Context) error {
	h.end(ErrReleased)
	h.done.Wait()
	if errors.Is(h.Err(), ErrExpired) {
		return ErrExpired
	}
	c := leases.Command{Op: leases.Release, Name: h.name, Entry: leases.Entry{Token: h.token}}
	_, _, err := h.leases.propose(ctx, &c)
	if err != nil {
		return fmt.Errorf("lease: release %q: %w", h.name, err)
	}
	return nil
}
