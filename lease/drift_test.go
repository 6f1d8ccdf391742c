package lease

// Leases under a virtual clock: the clocks of processes run at different rates, commands take
// their time, processes are cut off. A group of the test's own orders commands.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// process is a process with its clock and its copy of the table.
type process struct {
	group *group
	rate  float64
	table *Table
	queue chan proposal // in the group's order

	mu     sync.Mutex
	cutTo  time.Time // it reaches no other one until then
	slowTo time.Time // it applies nothing until then
}

type proposal struct {
	command []byte
	result  chan []byte // nil: another process waits for it
}

// group orders commands, and brings them to all processes.
type group struct {
	mu        sync.Mutex
	rng       *rand.Rand
	processes []*process
}

func (g *group) pause(most time.Duration) {
	g.mu.Lock()
	d := time.Duration(g.rng.Int64N(int64(most)))
	g.mu.Unlock()
	time.Sleep(d)
}

func newGroup(seed uint64, began time.Time, rates ...float64) *group {
	g := &group{rng: rand.New(rand.NewPCG(seed, 1))}
	for _, rate := range rates {
		p := &process{group: g, rate: rate, queue: make(chan proposal, 1<<16)}
		p.table = newTable(func() time.Duration { return time.Duration(rate * float64(time.Since(began))) })
		g.processes = append(g.processes, p)
	}
	return g
}

// apply applies what is ordered, until the queue ends.
func (p *process) apply() {
	for next := range p.queue {
		p.await(&p.cutTo)
		p.await(&p.slowTo)
		p.group.pause(20 * time.Millisecond)
		result := p.table.Apply(next.command)
		if next.result != nil {
			next.result <- result
		}
	}
}

// await waits until a fault of the process has passed.
func (p *process) await(fault *time.Time) {
	p.mu.Lock()
	d := time.Until(*fault)
	p.mu.Unlock()
	time.Sleep(max(d, 0))
}

// suffer lets a fault begin.
func (p *process) suffer(fault *time.Time, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*fault = time.Now().Add(d)
}

func (p *process) Propose(ctx context.Context, _ string, command []byte) ([]byte, error) {
	p.await(&p.cutTo)
	p.group.pause(20 * time.Millisecond)
	result := make(chan []byte, 1)
	p.group.mu.Lock()
	for _, o := range p.group.processes {
		next := proposal{command: command}
		if o == p {
			next.result = result
		}
		o.queue <- next
	}
	p.group.mu.Unlock()
	select {
	case r := <-result:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *process) Read(context.Context, func()) error { return errors.New("not in this test") }

func (p *process) after(d time.Duration) <-chan time.Time {
	return time.After(time.Duration(float64(d)/p.rate) + 1)
}

// tenure is when a process has held a lease, by the clock of an observer.
type tenure struct {
	token    uint64
	from, to time.Duration
}

// hold acquires a lease, holds it for a while, and releases it or is cut off until it expires.
func (p *process) hold(ctx context.Context, l *Leases, began time.Time) (tenure, error) {
	held, err := l.Acquire(ctx, "n")
	if err != nil {
		return tenure{}, err
	}
	t := tenure{token: held.token, from: time.Since(began)}
	p.group.mu.Lock()
	rng := p.group.rng
	d, fault, other := time.Duration(rng.Int64N(int64(2*time.Second))), rng.IntN(3),
		p.group.processes[rng.IntN(len(p.group.processes))]
	p.group.mu.Unlock()
	switch fault {
	case 0:
		p.suffer(&p.cutTo, d)
	case 1:
		other.suffer(&other.slowTo, d)
	}
	select {
	case <-time.After(d):
	case <-held.Done():
	}
	t.to = min(time.Since(began), time.Duration(float64(held.until.Load())/p.rate))
	_ = held.Release(ctx)
	return t, nil
}

// tenures runs processes with clocks of different rates that contend for one lease.
func tenures(t *testing.T, seed uint64, changes int, drift float64, rates ...float64) (all []tenure) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := newGroup(seed, began, rates...)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		var holding, applying sync.WaitGroup
		for i, p := range g.processes {
			applying.Go(p.apply)
			l := newLeases(Config{Table: p.table, TTL: time.Second, Drift: drift}, p, fmt.Sprint(i), p.after)
			holding.Go(func() {
				for ctx.Err() == nil {
					held, err := p.hold(ctx, l, began)
					mu.Lock()
					if err == nil {
						all = append(all, held)
					}
					if len(all) >= changes {
						stop()
					}
					mu.Unlock()
				}
			})
		}
		holding.Wait()
		for _, p := range g.processes {
			close(p.queue)
		}
		applying.Wait()
	})
	return all
}

// overlaps counts the leases that begin before the one before has ended, and those whose token
// does not rise.
func overlaps(all []tenure) (n int) {
	slices.SortFunc(all, func(a, b tenure) int { return int(a.from - b.from) })
	for i := range all[1:] {
		if all[i+1].from < all[i].to || all[i+1].token <= all[i].token {
			n++
		}
	}
	return n
}

// At no time are two leases valid, by the clock of an observer, while clocks differ by as much as
// the drift says.
func TestOneHolderAtATime(t *testing.T) {
	changes := testutil.Rounds.Or(1000)
	all := tenures(t, uint64(testutil.Seed.Or(1)), changes, 0.05, 1, 1.02, 1.05)
	if n := overlaps(all); n > 0 {
		t.Fatalf("%d of %d leases overlap", n, len(all))
	}
	expired := 0
	for _, h := range all {
		if h.to-h.from > 900*time.Millisecond {
			expired++
		}
	}
	t.Logf("%d changes, %d of them after a TTL or more, 0 at the same time", len(all), expired)
}

// Clocks that differ by more than the drift give the lease to two processes: the test above can
// fail.
func TestDriftBeyondTheSettingIsFound(t *testing.T) {
	if n := overlaps(tenures(t, 1, 1000, 1e-9, 1, 1.5, 2)); n == 0 {
		t.Error("no overlap")
	}
}

// A holder counts from before it has asked: others may have seen its lease long before it has the
// answer.
func TestLeaseIsCountedFromBeforeItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newGroup(1, began, 1).processes[0]
		var applying sync.WaitGroup
		applying.Go(p.apply)
		l := newLeases(Config{Table: p.table, TTL: time.Second}, p, "a", p.after)
		if err := l.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		asks := time.Since(began)
		p.suffer(&p.slowTo, 600*time.Millisecond)
		held, err := l.Acquire(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if until := time.Duration(held.until.Load()); until != asks+time.Second ||
			time.Since(began)-asks < 600*time.Millisecond {
			t.Errorf("acquired until %v", until)
		}
		p.suffer(&p.slowTo, 370*time.Millisecond) // a third of a TTL later it renews
		testutil.Advance(399 * time.Millisecond)
		asked := time.Since(began) - 399*time.Millisecond + time.Second/renewals
		if until := time.Duration(held.until.Load()); (until - asked - time.Second).Abs() > time.Microsecond {
			t.Errorf("at %v renewed until %v", time.Since(began), until)
		}
		_ = held.Release(t.Context())
		close(p.queue)
		applying.Wait()
	})
}

// A table that is full of leases whose holders are gone has room again when they have expired.
func TestExpiredLeasesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(1, time.Now(), 1)
		p := g.processes[0]
		var applying sync.WaitGroup
		applying.Go(p.apply)
		l := newLeases(Config{Table: p.table, TTL: time.Second}, p, "a", p.after)
		for i := range leases.MaxLeases {
			c := leases.Command{Op: leases.Acquire, Name: fmt.Sprint(i), Entry: leases.Entry{
				TTL:    leases.Time(time.Second),
				Holder: "gone",
			}}
			if i > 2 {
				c.TTL = leases.Time(1000 * time.Hour)
			}
			p.table.Apply(c.Encode())
		}
		if _, err := l.TryAcquire(t.Context(), "n"); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		testutil.Advance(2 * time.Second)
		held, err := l.Acquire(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); err != nil || held.Valid() || !errors.Is(held.Err(), ErrReleased) {
			t.Error(err, held.Err())
		}
		close(p.queue)
		applying.Wait()
	})
}
