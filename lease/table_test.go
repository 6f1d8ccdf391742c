package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/replicated"
)

// Whatever is proposed, and in whichever order: a lease changes hands only by a command that
// knows its token and how often it was renewed; only its holder renews and releases it; and every
// holder has a higher token than all before. A table that was restored goes on alike.
func TestTableLikeARule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable(func() time.Duration { return 0 })
		last := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := command{
				op: operation(rapid.IntRange(0, 4).Draw(t, "op")), name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				entry:   entry{Token: rapid.Uint64Range(0, last).Draw(t, "token"), Renewals: rapid.Uint64Range(0, 2).Draw(t, "renewals"), TTL: time.Second, Holder: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder")},
				expired: rapid.Bool().Draw(t, "expired"),
			}
			before, held := table.leases[c.name]
			changed := table.changed.Wait()
			verdict, token := decodeResult(table.Apply(c.encode()))
			after, holds := table.leases[c.name]
			known := held && c.Token == before.Token
			fresh := known && c.Renewals == before.Renewals
			ok := c.op == opAcquire && (!held || fresh) || c.op == opRenew && known || c.op == opRelease && known && (fresh || !c.expired)
			if (verdict == verdictOK) != ok || token != after.Token {
				t.Fatalf("%+v of %+v (%v): verdict %d, token %d", c, before, held, verdict, token)
			}
			select {
			case <-changed:
				if !ok {
					t.Fatalf("%+v is told, and changes nothing", c)
				}
			default:
				if ok {
					t.Fatalf("%+v is not told", c)
				}
			}
			want := before
			switch {
			case ok && c.op == opAcquire:
				want = entry{Token: last + 1, TTL: c.TTL, Holder: c.Holder}
				last++
			case ok && c.op == opRenew:
				want.Renewals++
			case ok:
				want = entry{}
			}
			if after != want || holds != (want != entry{}) {
				t.Fatalf("%+v of %+v: %+v, want %+v", c, before, after, want)
			}
			if rapid.IntRange(0, 5).Draw(t, "restore") == 0 {
				var b bytes.Buffer
				if err := table.Snapshot(&b); err != nil {
					t.Fatal(err)
				}
				restored := newTable(func() time.Duration { return 0 })
				told := restored.changed.Wait()
				if err := restored.Restore(&b); err != nil || !maps.Equal(restored.leases, table.leases) || len(restored.seen) != len(table.leases) {
					t.Fatalf("%v, %v", restored.leases, err)
				}
				<-told
				table = restored
			}
		}
	})
	if v, _ := decodeResult(newTable(func() time.Duration { return 0 }).Apply([]byte{1})); v != verdictNo {
		t.Errorf("half a command: %d", v)
	}
	if err := NewTable().Restore(strings.NewReader("{")); err == nil {
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
	if d.failing && operation(c[0]) == opRelease {
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
		if d.now.Store(int64(now)); held.Valid() != valid {
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
	for n, valid := range map[int]bool{maxName: true, maxName + 1: false} {
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
		"Replica": func(c *Config) { c.Replica = nil }, "Machine": func(c *Config) { c.Machine = "" }, "Table": func(c *Config) { c.Table = nil },
		"TTL": func(c *Config) { c.TTL = -1 }, "Drift": func(c *Config) { c.Drift = 1 },
	} {
		c := good
		change(&c)
		wrong := new(pleach.ConfigError)
		if _, err := New(c); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	c := good
	c.Drift = -0.1
	if _, err := New(c); err == nil {
		t.Error("clocks that run backwards")
	}
	if l := newLeases(Config{TTL: 7, Drift: 0.5}, d, "", nil); l.config.TTL != 7 || l.config.Drift != 0.5 {
		t.Errorf("what was set became %+v", l.config)
	}
	if l := newLeases(Config{}, d, "", nil); l.config.TTL != defaultTTL || l.config.Drift != defaultDrift {
		t.Errorf("defaults: %+v", l.config)
	}
}

// A full table makes room for one more by what has expired, and by nothing else.
func TestFullTable(t *testing.T) {
	d := new(direct)
	a, _ := alone(d)
	for i := range maxLeases {
		d.table.Apply((&command{op: opAcquire, name: fmt.Sprint(i), entry: entry{TTL: time.Hour}}).encode())
	}
	if _, err := a.TryAcquire(t.Context(), "n"); !errors.Is(err, ErrFull) {
		t.Errorf("a full table: %v", err)
	}
	last := d.table.leases["8"]
	if v, _ := decodeResult(d.table.Apply((&command{op: opAcquire, name: "8", entry: last}).encode())); v != verdictOK {
		t.Errorf("a lease of a full table that changes hands: %d", v)
	}
	e := d.table.leases["7"]
	e.TTL = time.Second
	d.table.leases["7"] = e
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
	if _, held := d.table.leases["7"]; held || len(d.table.leases) != maxLeases {
		t.Errorf("%d leases, the expired one is there: %v", len(d.table.leases), held)
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
	if _, held := d.table.leases["n"]; held {
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
	d.table.Apply((&command{op: opRelease, name: "n", entry: entry{Token: l.Token()}}).encode())
	select {
	case ticks <- time.Time{}:
	case <-l.Done(): // the last renewal was late
	}
	if <-l.Done(); !errors.Is(l.Err(), ErrExpired) {
		t.Errorf("%v", l.Err())
	}
	l.done.Wait()
}
