package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/services/leases"
	"github.com/pleach-go/pleach/replicated"
)

// Those that wait for a lease are told of changes, and of nothing else. Half a snapshot is none.
func TestTableTellsChanges(t *testing.T) {
	table := NewTable()
	told := func(f func()) bool {
		changed := table.changed.Wait()
		f()
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	take := (&leases.Command{Op: leases.Acquire, Name: "n"}).Encode()
	if !told(func() { table.Apply(take) }) || told(func() { table.Apply(take) }) {
		t.Error("a lease that is taken is told, and one that is held is not")
	}
	var b bytes.Buffer
	if err := table.Snapshot(&b); err != nil || !told(func() { _ = table.Restore(&b) }) {
		t.Errorf("a snapshot that is restored is told: %v", err)
	}
	if err := table.Restore(strings.NewReader("{")); err == nil {
		t.Error("half a snapshot was taken")
	}
}

// direct is a group of one, without a network and with a clock that a test moves.
type direct struct {
	table *Table
	now   atomic.Int64
	err   error // of the next Propose
	// failing means that nothing can be released.
	failing bool
}

func (d *direct) Propose(_ context.Context, _ string, c []byte) ([]byte, error) {
	if d.failing && leases.Operation(c[0]) == leases.Release {
		return nil, errors.New("no quorum")
	}
	if err := d.err; err != nil {
		d.err = nil
		return nil, err
	}
	return d.table.Apply(c), nil
}

func (d *direct) Read(_ context.Context, f func()) error { f(); return nil }

// alone returns two processes with leases of 1 s on one table, whose clocks may differ by a
// hundredth. Nothing is renewed.
func alone(d *direct) (a, b *Leases) {
	d.table = newTable(func() time.Duration { return time.Duration(d.now.Load()) })
	never := func(time.Duration) <-chan time.Time { return nil }
	c := Config{Table: d.table, TTL: time.Second}
	return newLeases(c, d, "a", never), newLeases(c, d, "b", never)
}

// A lease is valid for its TTL, to the moment. Another process takes it over when the TTL and the
// drift of clocks have passed, not before; and then the first holder cannot release it.
func TestLeaseToTheMoment(t *testing.T) {
	d := new(direct)
	a, b := alone(d)
	held, err := a.TryAcquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	defer held.end(nil)
	for now, valid := range map[time.Duration]bool{0: true, time.Second - 1: true, time.Second: false} {
		d.now.Store(int64(now))
		if held.Valid() != valid {
			t.Errorf("at %v valid: %v", now, !valid)
		}
	}
	end := time.Second + time.Second/100
	for _, now := range []time.Duration{0, time.Second, end} {
		d.now.Store(int64(now))
		if _, err := b.TryAcquire(t.Context(), "n"); !errors.Is(err, ErrHeld) {
			t.Errorf("at %v: %v", now, err)
		}
	}
	d.now.Store(int64(end + 1))
	next, err := b.TryAcquire(t.Context(), "n")
	if err != nil || next.Token() <= held.Token() {
		t.Fatalf("%v, %v", next, err)
	}
	defer next.end(nil)
	if h, ok, err := a.Holder(t.Context(), "n"); !ok || err != nil || h != (Holder{"b", next.Token()}) {
		t.Errorf("%v, %v, %v", h, ok, err)
	}
	if _, ok, _ := a.Holder(t.Context(), "other"); ok {
		t.Error("a lease that nobody has has a holder")
	}
}

// Names, and what is asked for, have bounds.
func TestBounds(t *testing.T) {
	d := new(direct)
	a, _ := alone(d)
	for n, valid := range map[int]bool{leases.MaxName: true, leases.MaxName + 1: false} {
		l, err := a.TryAcquire(t.Context(), strings.Repeat("x", n))
		if (err == nil) != valid {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
		if err == nil {
			defer l.end(nil)
		}
	}
	d.err = errors.New("no quorum")
	if _, err := a.TryAcquire(t.Context(), "n"); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
	replica := new(replicated.Replica)
	good := Config{Replica: replica, Machine: "m", Table: NewTable()}
	for field, change := range map[string]func(*Config){
		"Replica": func(c *Config) { c.Replica = nil }, "Machine": func(c *Config) { c.Machine = "" },
		"Table": func(c *Config) { c.Table = nil },
		"TTL":   func(c *Config) { c.TTL = -1 }, "Drift": func(c *Config) { c.Drift = 1 },
	} {
		c := good
		change(&c)
		wrong := new(pleach.ConfigError)
		if _, err := New(c); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	wrong := new(pleach.ConfigError)
	if _, err := New(good); !errors.As(err, &wrong) || wrong.Field != "Machine" || !strings.Contains(err.Error(), `"m"`) {
		t.Errorf("a machine that the replica does not have: %v", err)
	}
	c := good
	c.Drift = -0.1
	if _, err := New(c); err == nil {
		t.Error("clocks that run backwards")
	}
	if l := newLeases(Config{Table: NewTable(), TTL: 7, Drift: 0.5}, d, "", nil); l.config.TTL != 7 ||
		l.config.Drift != 0.5 {
		t.Errorf("what was set became %+v", l.config)
	}
	if l := newLeases(Config{Table: NewTable()}, d, "", nil); l.config.TTL != defaultTTL ||
		l.config.Drift != defaultDrift {
		t.Errorf("defaults: %+v", l.config)
	}
}

// A full table makes room for one more by what has expired, and by nothing else.
func TestFullTable(t *testing.T) {
	d := new(direct)
	a, _ := alone(d)
	for i := range leases.MaxLeases {
		d.table.Apply((&leases.Command{
			Op: leases.Acquire, Name: fmt.Sprint(i),
			Entry: leases.Entry{TTL: leases.Time(time.Hour)},
		}).Encode())
	}
	if _, err := a.TryAcquire(t.Context(), "n"); !errors.Is(err, ErrFull) {
		t.Errorf("a full table: %v", err)
	}
	last, _ := a.look("8")
	if v, _ := leases.DecodeResult(d.table.Apply((&leases.Command{
		Op: leases.Acquire, Name: "8", Entry: last.Entry,
		Floor: d.table.state.Base(),
	}).Encode())); v != leases.OK {
		t.Errorf("a lease of a full table that changes hands: %d", v)
	}
	d.table.Apply((&leases.Command{Op: leases.Release, Name: "7", Entry: leases.Entry{Token: 8}}).Encode())
	d.table.Apply((&leases.Command{
		Op: leases.Acquire, Name: "7",
		Entry: leases.Entry{TTL: leases.Time(time.Second)},
	}).Encode())
	d.now.Store(int64(2 * time.Second))
	d.failing = true
	if _, err := a.TryAcquire(t.Context(), "n"); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("what has expired cannot be released: %v", err)
	}
	d.failing = false
	l, err := a.TryAcquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	defer l.end(nil)
	if _, held := a.look("7"); held || a.Stats().Leases != leases.MaxLeases {
		t.Errorf("%d leases, the expired one is there: %v", a.Stats().Leases, held)
	}
}

// A lease that was released says so, and one that was lost does.
func TestEndsOfLeases(t *testing.T) {
	d := new(direct)
	a, _ := alone(d)
	l, err := a.TryAcquire(t.Context(), "n")
	if err != nil || l.Err() != nil || l.Name() != "n" {
		t.Fatal(err, l.Err())
	}
	if err := l.Release(t.Context()); err != nil || !errors.Is(l.Err(), ErrReleased) || l.Valid() {
		t.Errorf("%v, %v", err, l.Err())
	}
	if _, held := a.look("n"); held {
		t.Error("it is still held")
	}
	l, _ = a.TryAcquire(t.Context(), "n")
	l.end(ErrExpired)
	if err := l.Release(t.Context()); !errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
	l, _ = a.TryAcquire(t.Context(), "m")
	d.err = errors.New("no quorum")
	if err := l.Release(t.Context()); err == nil {
		t.Error("a release that has failed says nothing")
	}
}

// A renewal prolongs a lease from the moment at which it began. A holder whose lease is not its
// own any more learns so from it.
func TestRenewals(t *testing.T) {
	d := new(direct)
	alone(d)
	ticks := make(chan time.Time)
	c := Config{Table: d.table, TTL: 3 * time.Second}
	a := newLeases(c, d, "a", func(wait time.Duration) <-chan time.Time {
		if wait == time.Second { // a third of the TTL
			return ticks
		}
		return nil
	})
	l, err := a.TryAcquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	d.now.Store(int64(2500 * time.Millisecond))
	ticks <- time.Time{}
	ticks <- time.Time{} // the first one is over
	d.now.Store(int64(5499 * time.Millisecond))
	if !l.Valid() {
		t.Error("it was not renewed")
	}
	d.table.Apply((&leases.Command{Op: leases.Release, Name: "n", Entry: leases.Entry{Token: l.Token()}}).Encode())
	select {
	case ticks <- time.Time{}:
	case <-l.Done(): // the last renewal was late
	}
	<-l.Done()
	if !errors.Is(l.Err(), ErrExpired) {
		t.Errorf("%v", l.Err())
	}
	l.done.Wait()
}

// lagging is a process whose table is behind the group: it applies what the group has ordered when
// the process reads or proposes.
type lagging struct {
	group, local *Table
	behind       [][]byte
}

func (g *lagging) Propose(_ context.Context, _ string, c []byte) ([]byte, error) {
	g.catchUp()
	g.local.Apply(c)
	return g.group.Apply(c), nil
}

func (g *lagging) Read(_ context.Context, f func()) error {
	g.catchUp()
	f()
	return nil
}

func (g *lagging) catchUp() {
	for _, c := range g.behind {
		g.local.Apply(c)
	}
	g.behind = nil
}

// elsewhere applies a command of another process, which the local table gets later.
func (g *lagging) elsewhere(c leases.Command) {
	g.group.Apply(c.Encode())
	g.behind = append(g.behind, c.Encode())
}

// TryAcquire and TryGrant get a lease whose release has returned in another process, even if the
// local table does not have the release yet (case 74).
func TestTryIsLinearizable(t *testing.T) {
	for name, try := range map[string]func(l *Leases) (uint64, error){
		"TryAcquire": func(l *Leases) (uint64, error) {
			held, err := l.TryAcquire(t.Context(), "n")
			if err != nil {
				return 0, err
			}
			held.end(nil)
			return held.Token(), nil
		},
		"TryGrant": func(l *Leases) (uint64, error) { return l.TryGrant(t.Context(), "n", "client", time.Second) },
	} {
		g := &lagging{group: NewTable(), local: NewTable()}
		l := newLeases(Config{Table: g.local, TTL: time.Hour, TokenFloor: func() uint64 { return 0 }}, g,
			"b", func(time.Duration) <-chan time.Time { return nil })
		g.elsewhere(leases.Command{
			Op: leases.Acquire, Name: "n",
			Entry: leases.Entry{Holder: "a", TTL: leases.Time(time.Hour)},
		})
		g.catchUp()
		if _, err := try(l); !errors.Is(err, ErrHeld) {
			t.Errorf("%s of a lease that is held: %v", name, err)
		}
		g.elsewhere(leases.Command{Op: leases.Release, Name: "n", Entry: leases.Entry{Token: 1}})
		if token, err := try(l); err != nil || token != 2 {
			t.Errorf("%s after a release elsewhere: token %d, %v", name, token, err)
		}
	}
}
