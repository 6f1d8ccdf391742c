package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/replicated"
)

// patience is how long a test waits for what happens within a second elsewhere.
const patience = time.Minute

// replica is a member with a table.
type replica struct {
	*replicated.Replica
	table registers
}

func start(t *testing.T, other *replica) *replica {
	t.Helper()
	var seeds []string
	if other != nil {
		seeds = []string{other.Group().Self().Address}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &replica{table: registers{}}
	var err error
	r.Replica, err = replicated.Join(ctx, replicated.Config{Machines: map[string]replicated.Machine{"table": r.table}},
		seeds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Abort() })
	if err := r.Read(ctx, func() {}); err != nil { // it has the state
		t.Fatal(err)
	}
	return r
}

// startShared makes a member whose group carries other messages, too.
func startShared(t *testing.T, other *replica) *replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &replica{table: registers{}}
	shared, err := replicated.NewShared(replicated.SharedConfig{
		Topic:    "commands",
		Machines: map[string]replicated.Machine{"table": r.table},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := pleach.Config{
		Delivery:  pleach.Delivery{Echo: true, Handlers: shared.Handlers()},
		OnMessage: func(m pleach.Message, err error) { shared.Receive(m, err) },
	}
	var g *pleach.Group
	if other == nil {
		g, err = pleach.Create(ctx, c)
	} else {
		g, err = pleach.Join(ctx, c, other.Group().Self().Address)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Replica = shared.Start(g)
	t.Cleanup(func() { _ = r.crash() })
	if err := r.Read(ctx, func() {}); err != nil { // it has the state
		t.Fatal(err)
	}
	return r
}

// crash ends the membership, whether the group is the replica's or not.
func (r *replica) crash() error { return errors.Join(r.Group().Abort(), r.Abort()) }

// do does one operation, and returns it for the history.
func (r *replica) do(ctx context.Context, began time.Time, client int, in input) porcupine.Operation {
	o := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(began))}
	var out output
	var err error
	if in.command == "" {
		err = r.Read(ctx, func() { out.value = r.table[in.key] })
	} else {
		var result []byte
		result, err = r.Propose(ctx, "table", []byte(in.command))
		out.value = string(result)
	}
	o.Return = int64(time.Since(began))
	if err != nil {
		out = output{unknown: true}
		o.Return = int64(time.Hour)
	}
	o.Output = out
	return o
}

// inputAtRandom returns an operation, whose value names it.
func inputAtRandom(rng *rand.Rand, client, n int) input {
	key := fmt.Sprint("k", rng.IntN(2))
	switch rng.IntN(3) {
	case 0:
		return input{key, fmt.Sprintf("set %s %d.%d", key, client, n)}
	case 1:
		return input{key, fmt.Sprintf("swap %s %d.%d %d.%d", key, rng.IntN(5), n-1, client, n)}
	}
	return input{key: key}
}

// Clients at all members set, swap and read two registers while leaders die and processes join.
func TestReplicasAreLinearizableAlthoughLeadersDie(t *testing.T) {
	t.Run("own group", func(t *testing.T) { checkLinearizable(t, start) })
	t.Run("shared group", func(t *testing.T) { checkLinearizable(t, startShared) })
}

func checkLinearizable(t *testing.T, start func(t *testing.T, other *replica) *replica) {
	t.Helper()
	replicas := []*replica{start(t, nil)}
	for range 4 {
		replicas = append(replicas, start(t, replicas[0]))
	}
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	client := func(r *replica, number int) {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(number)))
			pace := time.Tick(time.Millisecond)
			for n := 0; ctx.Err() == nil && r.Err() == nil; n++ {
				o := r.do(ctx, began, number, inputAtRandom(rng, number, n))
				mu.Lock()
				history = append(history, o)
				mu.Unlock()
				<-pace
			}
		})
	}
	for i, r := range replicas {
		client(r, i)
	}
	for i := range 3 { // each is the leader
		awaitMore(t, &mu, &history, 100)
		_ = replicas[i].crash()
		late := start(t, replicas[i+1])
		client(late, len(replicas))
		replicas = append(replicas, late)
	}
	awaitMore(t, &mu, &history, 100)
	stop()
	clients.Wait()
	checkHistory(t, history)
}

// awaitMore waits until so many more operations are in a history.
func awaitMore(t *testing.T, mu *sync.Mutex, history *[]porcupine.Operation, n int) {
	t.Helper()
	done := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(*history)
	}
	want := done() + n
	testutil.Eventually(t, fmt.Sprint(want, " operations"), func() bool { return done() >= want },
		func() any { return done() })
}

// A command whose caller has given up is applied once, or not at all.
func TestResultComesFromTheCommandThatWasProposed(t *testing.T) {
	a := start(t, nil)
	b := start(t, a)
	for n := range 100 {
		for _, r := range []*replica{a, b} {
			if _, err := r.Propose(t.Context(), "table", fmt.Appendf(nil, "set k %d", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, err := b.Propose(t.Context(), "table", []byte("swap k 99 done"))
	if err != nil || string(before) != "99" {
		t.Errorf("%q, %v", before, err)
	}
	if err := a.Read(t.Context(), func() { before = []byte(a.table["k"]) }); err != nil || string(before) != "done" {
		t.Errorf("%q, %v", before, err)
	}
	if s := a.Stats(); s.Applied < 201 || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
}

func TestProposeEnds(t *testing.T) {
	r := start(t, nil)
	if _, err := r.Propose(t.Context(), "tables", nil); !errors.Is(err, replicated.ErrNoMachine) {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Propose(t.Context(), "table", []byte("set k v")); !errors.Is(err, pleach.ErrClosed) {
		t.Error(err)
	}
}

// A call that ends while the group has no quorum says so (case 82).
func TestProposeWithoutAQuorum(t *testing.T) {
	a := start(t, nil)
	others := []*replica{start(t, a), start(t, a), start(t, a), start(t, a)}
	if _, err := a.Propose(t.Context(), "table", []byte("set k v")); err != nil {
		t.Fatal(err)
	}
	var crashes sync.WaitGroup
	for _, r := range others {
		crashes.Go(func() { _ = r.crash() })
	}
	crashes.Wait()
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := a.Propose(ctx, "table", []byte("set k v"))
		cancel()
		if errors.Is(err, pleach.ErrNoQuorum) && errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v", err)
		}
	}
}
