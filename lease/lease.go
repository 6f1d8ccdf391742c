package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/internal/services/tokens"
	"github.com/pleach-go/pleach/replicated"
)

// Errors of this package.
var (
	// ErrHeld is returned by TryAcquire if another holder has the lease.
	ErrHeld = errors.New("lease: held by another")
	// ErrEarly is returned by TryAcquire if the table began empty, and processes from before may
	// still hold leases that it does not have ([Table.Begin]).
	ErrEarly = errors.New("lease: the leases were lost: a holder from before may still hold one until its TTL is over")
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
	// TTL is how long a lease is valid without a renewal. The holder renews it three times per
	// TTL. A holder that dies keeps others out for about as long. If zero, 5 s.
	TTL time.Duration
	// Drift is the largest relative difference between the rates of two processes' clocks. It is
	// the same in all processes. If zero, 0.01: twenty times the usual error of a clock without a
	// time server.
	Drift float64
	// TokenFloor returns a lower bound for the tokens of new leases, such as the time of day. The
	// members that begin a table use the highest of their bounds. So tokens keep rising even if
	// all processes restart and lose the last token. If nil, the time of day in milliseconds.
	TokenFloor func() uint64
	// DataDir is a directory in which this process saves an upper bound of all tokens so far:
	// tokens then keep rising even if clocks were set back meanwhile. If empty, the data
	// directory of the group.
	DataDir string
}

// Leases are the leases of a group, for one process. Its methods are safe for concurrent use.
type Leases struct {
	config  Config
	group   proposer
	holder  string
	members func() (self string, all []string) // names of processes in the view
	ended   <-chan struct{}                    // closed when the replica has ended
	// preparing has room for the goroutine that prepares the table.
	preparing chan struct{}
	after     func(time.Duration) <-chan time.Time
	table     *Table
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

// New returns the leases of a group. The other processes use the same machine and drift, and call
// New as soon as they are members: when a table begins, no process gets a lease until all members
// of the view have sent their TokenFloor, or 5 s have passed.
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
	if c.Replica.Machine(c.Machine) != replicated.Machine(c.Table) {
		return nil, &pleach.ConfigError{
			Field:  "Machine",
			Reason: fmt.Sprintf("is %q: the replica has no such machine, or it is not Table", c.Machine),
		}
	}
	group := c.Replica.Group()
	mark, err := tokens.Open(cmp.Or(c.DataDir, group.DataDir()), "lease/"+c.Machine)
	if err == nil {
		err = c.Table.keep(mark)
	}
	if err != nil {
		return nil, &pleach.ConfigError{Field: "DataDir", Reason: err.Error(), Err: err}
	}
	l := newLeases(c, c.Replica, group.Self().ID, time.After)
	l.members = func() (self string, all []string) {
		for _, m := range group.View().Members() {
			all = append(all, processName(m))
		}
		return processName(group.Self()), all
	}
	l.ended = c.Replica.Done()
	go l.keepPrepared()
	return l, nil
}

// processName is the name of a process: it differs from that of another start.
func processName(m pleach.Member) string { return fmt.Sprint(m.ID, "/", m.Incarnation) }

func newLeases(c Config, group proposer, holder string, after func(time.Duration) <-chan time.Time) *Leases {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Drift == 0 {
		c.Drift = defaultDrift
	}
	if c.TokenFloor == nil {
		c.TokenFloor = tokens.Clock
	}
	c.Table.use(func(_ leases.Time, state *leases.Table) { state.Drift = c.Drift })
	alone := func() (string, []string) { return holder, nil }
	return &Leases{
		config: c, group: group, holder: holder, members: alone, after: after, table: c.Table,
		preparing: make(chan struct{}, 1),
	}
}

// Acquire waits until a lease is free, or has expired, and takes it. Of several processes that
// wait, any may be the next. A name has 255 bytes at most. The caller releases the lease.
func (l *Leases) Acquire(ctx context.Context, name string) (held *Lease, err error) {
	err = l.retry(ctx, name, l.config.TTL, func() error {
		token, began, err := l.take(ctx, name, l.holder, l.config.TTL)
		if err == nil {
			held = l.keep(name, token, began)
		}
		return err
	})
	return held, err
}

// retry tries to take a lease until it is not held by another, and was not by one from before.
func (l *Leases) retry(ctx context.Context, name string, ttl time.Duration, try func() error) error {
	for {
		changed := l.table.changed.Wait()
		err := try()
		wait := l.config.TTL // it was taken this moment
		switch h, ok := l.look(name); {
		case errors.Is(err, ErrEarly):
			wait = l.early(ttl)
		case !errors.Is(err, ErrHeld):
			return err
		case ok:
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

// TryAcquire takes a lease if it is free or has expired, and returns [ErrHeld] otherwise, or
// [ErrEarly]. It is linearizable: a lease whose release has returned in any process is free.
func (l *Leases) TryAcquire(ctx context.Context, name string) (*Lease, error) {
	token, began, err := l.takeNow(ctx, name, l.holder, l.config.TTL)
	if err != nil {
		return nil, err
	}
	return l.keep(name, token, began), nil
}

// takeNow is take, but refuses a lease by the current state of the group only. The local table may
// not have the release of the lease yet.
func (l *Leases) takeNow(ctx context.Context, name, holder string,
	ttl time.Duration,
) (token uint64, began time.Duration, err error) {
	token, began, err = l.take(ctx, name, holder, ttl)
	if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrEarly) {
		return token, began, err
	}
	if err := l.group.Read(ctx, func() {}); err != nil {
		return 0, 0, fmt.Errorf("lease: %q: %w", name, err)
	}
	return l.take(ctx, name, holder, ttl)
}

// take takes a lease for a holder, and returns its token, and a time by the table's clock before any
// process could see the lease. It refuses a lease that the local table has as held.
func (l *Leases) take(ctx context.Context, name, holder string,
	ttl time.Duration,
) (token uint64, began time.Duration, err error) {
	if len(name) > leases.MaxName {
		return 0, 0, fmt.Errorf("lease: a name of %d bytes is too long: %d at most", len(name), leases.MaxName)
	}
	if err := l.prepare(ctx); err != nil {
		return 0, 0, fmt.Errorf("lease: %q: %w", name, err)
	}
	floor := l.floor()
	var c leases.Command
	var free bool
	l.table.use(func(now leases.Time, state *leases.Table) {
		began = time.Duration(now)
		c, free = state.Take(now, name, leases.Entry{TTL: leases.Time(ttl), Holder: holder}, floor)
	})
	if !free {
		by, held := l.look(name)
		if held && by.wait > 0 {
			return 0, 0, fmt.Errorf("%w: %q by %s", ErrHeld, name, by.Holder)
		}
		return 0, 0, fmt.Errorf("%w: %q is given in %v", ErrEarly, name, l.early(ttl).Round(time.Millisecond))
	}
	v, token, err := l.propose(ctx, &c)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("lease: %q: %w", name, err)
	case c.Op == leases.Elapsed:
		return l.take(ctx, name, holder, ttl)
	case v == leases.Early: // the table has begun since, so this process has not waited
		if err := l.Release(ctx, name, token); err != nil && !errors.Is(err, ErrExpired) {
			return 0, 0, err
		}
		return 0, 0, fmt.Errorf("%w: %q", ErrEarly, name)
	case v == leases.Full:
		if err := l.sweep(ctx); err != nil {
			return 0, 0, fmt.Errorf("lease: %q: %w", name, err)
		}
		return l.take(ctx, name, holder, ttl)
	case v != leases.OK:
		return 0, 0, fmt.Errorf("%w: %q", ErrHeld, name)
	}
	if err := l.table.covered(); err != nil {
		return 0, 0, fmt.Errorf("lease: %q: Config.DataDir: %w", name, errors.Join(err, l.Release(ctx, name, token)))
	}
	return token, began, nil
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

// early returns how long this process waits before it takes a lease, because the table began empty.
func (l *Leases) early(ttl time.Duration) time.Duration {
	var wait leases.Time
	l.table.use(func(now leases.Time, state *leases.Table) { wait, _ = state.Early(now, leases.Time(ttl)) })
	return max(time.Duration(wait), 0)
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
		e, ok = l.look(name)
		if ok {
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
