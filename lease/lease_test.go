package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/replicated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// member is a process with leases.
type member struct {
	*replicated.Replica
	leases *lease.Leases
}

func start(t *testing.T, ttl time.Duration, other *member) *member {
	t.Helper()
	var seeds []string
	if other != nil {
		seeds = []string{other.Group().Self().Address}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	table := lease.NewTable()
	r, err := replicated.Join(ctx, replicated.Config{Machines: map[string]replicated.Machine{"leases": table}}, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Abort() })
	leases, err := lease.New(lease.Config{Replica: r, Machine: "leases", Table: table, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := leases.Holder(ctx, "n"); err != nil { // it has the state
		t.Fatal(err)
	}
	return &member{r, leases}
}

// change is an operation on a lock: the token of a holder that begins, or ends.
type change struct {
	token uint64
	ends  bool
}

// lock is a lock whose holders have tokens that rise.
var lock = porcupine.Model{
	Init: func() any { return change{ends: true} },
	Step: func(state, in, _ any) (bool, any) {
		last, next := state.(change), in.(change)
		if next.ends {
			return !last.ends && last.token == next.token, next
		}
		return last.ends && next.token > last.token, next
	},
}

// Members contend for one lease. Holders die: the next one begins when the lease has expired. Members
// contend until two holders have died and five have held the lease since.
func TestLeaseIsALockAlthoughHoldersDie(t *testing.T) {
	const ttl = 1500 * time.Millisecond
	members := []*member{start(t, ttl, nil)}
	for range 4 {
		members = append(members, start(t, ttl, members[0]))
	}
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	kills, since := 0, 0
	note := func(client int, c change, call, end time.Time) {
		history = append(history, porcupine.Operation{
			ClientId: client, Input: c, Call: int64(call.Sub(began)),
			Return: int64(end.Sub(began)),
		})
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var clients sync.WaitGroup
	for i, m := range members {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				call := time.Now()
				held, err := m.leases.Acquire(ctx, "n")
				if err != nil {
					return
				}
				got := time.Now()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				dies := n == 3 && kills < 2
				if dies {
					kills++
				}
				mu.Unlock()
				ends, most := time.Now(), time.Now().Add(time.Hour)
				if !held.Valid() {
					t.Error("a lease has expired that is renewed")
				}
				if dies {
					_ = m.Abort()
					for now := ends; held.Valid(); now = time.Now() {
						ends = now // it is still the holder
						time.Sleep(time.Millisecond)
					}
				}
				_ = held.Release(ctx)
				mu.Lock()
				note(2*i, change{token: held.Token()}, call, got)
				note(2*i+1, change{token: held.Token(), ends: true}, ends, most)
				since++
				if dies {
					since = 0
				}
				if kills == 2 && since == 5 {
					stop()
				}
				mu.Unlock()
				if dies {
					return
				}
			}
		})
	}
	clients.Wait()
	if result := porcupine.CheckOperationsTimeout(lock, history, 30*time.Second); result != porcupine.Ok || kills != 2 ||
		len(history) < 20 {
		t.Errorf("%d operations, %d holders killed: %v", len(history), kills, result)
	}
	t.Logf("%d changes, %d holders killed", len(history)/2, kills)
}

func TestLeaseOfAnotherIsHeld(t *testing.T) {
	a := start(t, time.Minute, nil)
	b := start(t, time.Minute, a)
	held, err := a.leases.TryAcquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	if h, ok, err := b.leases.Holder(t.Context(), "n"); err != nil || !ok || h.Token != held.Token() ||
		h.ID != a.Group().Self().ID {
		t.Error(h, ok, err)
	}
	if _, err := b.leases.TryAcquire(t.Context(), "n"); !errors.Is(err, lease.ErrHeld) {
		t.Error(err)
	}
	next := make(chan *lease.Lease)
	go func() {
		l, err := b.leases.Acquire(t.Context(), "n")
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	if err := held.Release(t.Context()); err != nil || held.Valid() {
		t.Error(err)
	}
	l := <-next
	if l.Token() <= held.Token() || !l.Valid() {
		t.Error(fmt.Sprint(l.Token(), " after ", held.Token()))
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
