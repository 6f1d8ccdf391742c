package shard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/shard"
)

// patience is how long a test waits for what happens within a second elsewhere.
const patience = time.Minute

// member is a member of a group with its shards.
type member struct {
	*pleach.Group
	*shard.Shards
}

// start starts a member; the first one creates the group.
func start(t *testing.T, id string, c shard.Config, first *member) *member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config := pleach.Config{Group: "shards", ID: id}
	var g *pleach.Group
	var err error
	if first == nil {
		g, err = pleach.Create(ctx, config)
	} else {
		g, err = pleach.Join(ctx, config, first.Self().Address)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.New(g, c)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{g, s}
	t.Cleanup(m.kill)
	return m
}

// kill has the others see a crash.
func (m *member) kill() {
	_ = m.Abort()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Shards.Leave(ended)
}

// owns counts the partitions that a member serves.
func (m *member) owns() (n int) {
	for range m.Owned() {
		n++
	}
	return n
}

// settled waits until members own all partitions between them.
func settled(t *testing.T, partitions int, members ...*member) {
	t.Helper()
	sum := 0
	testutil.Eventually(t, fmt.Sprint(partitions, " partitions have an owner"), func() bool {
		sum = 0
		for _, m := range members {
			sum += m.owns()
		}
		return sum == partitions
	}, func() any { return sum })
}

// keyOf finds a key that a member owns.
func keyOf(t *testing.T, m *member) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("key-", i)
		if o, ok := m.Owner(key); ok && o.Member.ID == m.Self().ID {
			return key
		}
	}
	t.Fatal("a member owns nothing")
	return ""
}

// owner waits until a member knows the owner of a key: it learns it by a message.
func owner(t *testing.T, m *member, key, other string) (o shard.Owner) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("%s knows an owner of %s that is not %q", m.Self().ID, key, other), func() bool {
		var ok bool
		o, ok = m.Owner(key)
		return ok && o.Member.ID != other
	})
	return o
}

var errDone = errors.New("done")

// token returns the token by which a member serves a key.
func token(m *member, key string) (token uint64, err error) {
	err = m.Serve(context.Background(), key, func(_ context.Context, is uint64) error {
		token = is
		return errDone
	})
	if errors.Is(err, errDone) {
		err = nil
	}
	return token, err
}

// What a member owns goes to the others when it dies, with higher tokens.
func TestOwnerDies(t *testing.T) {
	for name, lease := range map[string]time.Duration{"lease": 200 * time.Millisecond, "tokens": -1} {
		t.Run(name, func(t *testing.T) {
			c := shard.Config{Partitions: 32, Lease: lease}
			a := start(t, "a", c, nil)
			b := start(t, "b", c, a)
			d := start(t, "d", c, a)
			settled(t, 32, a, b, d)
			key := keyOf(t, b)
			before, err := token(b, key)
			if err != nil {
				t.Fatal(err)
			}
			owner(t, a, key, "")
			_, err = token(a, key)
			var not *shard.NotOwnerError
			if !errors.As(err, &not) || not.Owner == nil || not.Owner.Member.ID != "b" || not.Owner.Token != before {
				t.Fatalf("a serves a key of b: %v", err)
			}
			b.kill()
			settled(t, 32, a, d)
			if o := owner(t, a, key, "b"); o.Token <= before {
				t.Errorf("owner %v after a death, token %d before", o, before)
			}
			if _, err := token(b, key); err == nil {
				t.Error("a dead member serves")
			}
		})
	}
}

// The next owner of a partition begins when the work on it has ended, and after Release.
func TestHandoffWaitsForWork(t *testing.T) {
	var working, released atomic.Int64
	var partition atomic.Int64
	c := shard.Config{Partitions: 16, HandoffTimeout: time.Minute, Release: func(_ context.Context, p int, _ uint64) {
		if working.Load() > 0 && int64(p) == partition.Load() {
			t.Error("released while work goes on")
		}
		released.Add(1)
	}}
	a := start(t, "a", c, nil)
	settled(t, 16, a)
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	working.Add(1)
	key := "some key"
	partition.Store(int64(a.Partition(key)))
	go func() {
		done <- a.Serve(t.Context(), key, func(ctx context.Context, _ uint64) error {
			close(begun)
			<-end
			working.Add(-1)
			return ctx.Err()
		})
	}()
	<-begun
	closing := make(chan error)
	go func() { closing <- a.Shards.Leave(t.Context()) }()
	select {
	case err := <-closing:
		t.Fatal("closed while work goes on: ", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(end)
	if err := errors.Join(<-done, <-closing); err != nil {
		t.Error(err)
	}
	if released.Load() != 16 {
		t.Errorf("%d partitions released", released.Load())
	}
	if _, err := token(a, key); !errors.Is(err, shard.ErrClosed) {
		t.Error(err)
	}
}

// A partition that moves to a joiner is handed over without a wait, and the program of the old
// owner that does not end its work is told by its context.
func TestJoinerTakesOver(t *testing.T) {
	c := shard.Config{Partitions: 16, HandoffTimeout: 100 * time.Millisecond, Lease: 200 * time.Millisecond}
	a := start(t, "a", c, nil)
	settled(t, 16, a)
	works := make(chan error, 16)
	moved := map[int]bool{}
	for i := 0; len(moved) < 16; i++ {
		key := fmt.Sprint("key-", i)
		if p := a.Partition(key); !moved[p] {
			moved[p] = true
			go func() {
				works <- a.Serve(t.Context(), key, func(ctx context.Context, _ uint64) error {
					<-ctx.Done()
					return context.Cause(ctx)
				})
			}()
		}
	}
	b := start(t, "b", c, a)
	settled(t, 16, a, b)
	for range b.owns() {
		if err := <-works; !errors.Is(err, shard.ErrNotOwner) {
			t.Error(err)
		}
	}
	if err := b.Shards.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.Group.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, 16, a)
}

// Changes tells all members of every owner.
func TestChangesAgree(t *testing.T) {
	c := shard.Config{Partitions: 16, Lease: -1}
	a := start(t, "a", c, nil)
	b := start(t, "b", c, a)
	settled(t, 16, a, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, m := range []*member{a, b} {
		owned, self := map[int]string{}, 0
		for c := range m.Changes(ctx) {
			if c.Owner == nil {
				continue
			}
			owned[c.Partition] = c.Owner.Member.ID
			if c.Self {
				self++
			}
			if len(owned) == 16 {
				break
			}
		}
		if len(owned) < 16 || self != m.owns() {
			t.Errorf("%s knows %d owners, %d of them itself", m.Self().ID, len(owned), self)
		}
	}
}

// A setting that makes no sense is refused.
func TestConfigs(t *testing.T) {
	a := start(t, "a", shard.Config{}, nil)
	for field, c := range map[string]shard.Config{
		"Partitions": {Partitions: -1}, "Lease": {Lease: 1000 * time.Hour}, "HandoffTimeout": {HandoffTimeout: -1},
		"Name": {Name: string(make([]byte, 101))},
	} {
		_, err := shard.New(a.Group, c)
		var wrong *pleach.ConfigError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Members with other settings get an error that names both values, and serve nothing (case 77).
func TestMembersWithOtherSettings(t *testing.T) {
	a := start(t, "a", shard.Config{Partitions: 16}, nil)
	b := start(t, "b", shard.Config{Partitions: 64}, a)
	var err error
	var settings *shard.SettingsError
	testutil.Eventually(t, "an error that names the setting", func() bool {
		err = b.Serve(t.Context(), "k", func(context.Context, uint64) error { return nil })
		if err == nil {
			t.Fatal("a member with other settings serves a key")
		}
		return errors.As(err, &settings) && errors.Is(err, shard.ErrNotOwner)
	}, func() any { return err })
	if settings.Setting != "Partitions" || settings.Own != "64" || settings.Other != "16" || settings.Member.ID != "a" {
		t.Errorf("%+v", settings)
	}
	testutil.Eventually(t, "the other member sees it", func() bool { return a.Shards.Err() != nil })
}
