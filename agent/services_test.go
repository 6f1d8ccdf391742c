package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const patience = time.Minute

func status(err error) int {
	var refused *client.RefusedError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// What one agent puts, all others get, and their watches see it. An agent that joins gets the
// keys there are.
func TestKeysOfAgents(t *testing.T) {
	agents := startAll(t, 3, "")
	ctx := t.Context()
	first, err := agents[0].Put(ctx, "config/a b", []byte{0xff}, nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan api.Change, 100)
	watching, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- agents[2].Watch(watching, "config/", func(c api.Change) error { changes <- c; return nil })
	}()
	expect := func(key string, version uint64, deleted bool) {
		t.Helper()
		select {
		case c := <-changes:
			if c.Key != key || c.Version != version || c.Deleted != deleted {
				t.Fatalf("got %+v", c)
			}
		case <-time.After(patience):
			t.Fatal("no change")
		}
	}
	expect("config/a b", first.Version, false)
	var none uint64
	if _, err := agents[1].Put(ctx, "config/a b", nil, &none, patience); status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), fmt.Sprint(first.Version)) {
		t.Fatalf("got %v", err)
	}
	second, err := agents[1].Put(ctx, "config/a b", []byte("b"), &first.Version, patience)
	if err != nil || second.Version <= first.Version {
		t.Fatalf("%v after %v: %v", second, first, err)
	}
	expect("config/a b", second.Version, false)
	members, err := agents[0].Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	late := start(t, fmt.Sprintf("id: late\nlisten: 127.0.0.1:0\nseeds: [%q]\n", members.Members[0].Address))
	if e, err := late.Get(ctx, "config/a b", patience); err != nil || e.Data != "b" || e.Version != second.Version {
		t.Fatalf("got %+v, %v", e, err)
	}
	if list, err := late.List(ctx, "config", patience); err != nil || len(list.Entries) != 1 {
		t.Fatalf("got %+v, %v", list, err)
	}
	if _, err := late.Delete(ctx, "config/a b", nil, patience); err != nil {
		t.Fatal(err)
	}
	expect("config/a b", second.Version, true)
	if _, err := agents[0].Get(ctx, "config/a b", patience); status(err) != http.StatusNotFound {
		t.Fatalf("got %v", err)
	}
	if _, err := agents[0].Put(ctx, "k", make([]byte, 64<<10+1), nil,
		patience); status(err) != http.StatusRequestEntityTooLarge {
		t.Fatalf("got %v", err)
	}
	end()
	<-ended
}

// An agent whose file with the tokens of locks is damaged leaves the group and ends with an error that
// names the file: it would answer for keys, and never for locks. This holds if it begins the group, too.
func TestDamagedTokensOfLocks(t *testing.T) {
	first := start(t, "id: first\nlisten: 127.0.0.1:0\nexpect: 1\n")
	members, err := first.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{"expect: 1", fmt.Sprintf("seeds: [%q]", members.Members[0].Address)} {
		for range 5 { // messages of the services may arrive before and after
			dir := t.TempDir()
			file := filepath.Join(dir, "tokens.lease%2Flocks")
			if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
			a, joined := begin(t, fmt.Sprintf("id: damaged\nlisten: 127.0.0.1:0\ndata-dir: %q\n%s\n", dir, with))
			select {
			case err := <-a.ended:
				if err == nil || !strings.Contains(err.Error(), file) {
					t.Errorf("%s: %v", with, err)
				}
			case <-joined:
				_, err := a.Lock(t.Context(), client.LockRequest{Name: "l", TTL: time.Second, Timeout: time.Second})
				t.Fatalf("%s: the agent is a member; a lock: %v", with, err)
			case <-time.After(patience):
				t.Fatalf("%s: the agent does not end", with)
			}
		}
	}
	testutil.Eventually(t, "the agents have left", func() bool {
		m, err := first.Members(t.Context())
		return err == nil && len(m.Members) == 1
	})
}

// A watch whose agent ends says so (case 82).
func TestWatchEndsWithTheAgent(t *testing.T) {
	a := startAll(t, 2, "")[0]
	if _, err := a.Put(t.Context(), "k", nil, nil, patience); err != nil {
		t.Fatal(err)
	}
	err := a.Watch(t.Context(), "", func(api.Change) error { a.stop(); return nil })
	if err == nil || !strings.Contains(err.Error(), "the agent has ended the watch") {
		t.Errorf("got %v", err)
	}
}

// Agents and Go programs are members of one group, which a Go program has begun: agents receive
// what is broadcast, and have keys as soon as one of them leads.
func TestKeysBesideGoPrograms(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program, err := pleach.Create(ctx, pleach.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("listen: 127.0.0.1:0\nseeds: [%q]\n", program.Self().Address)
	a, b := start(t, text), start(t, text)
	events, _ := b.subscribe(t, client.Subscription{})
	if _, err := a.Broadcast(ctx, "t", []byte("hello"), true, patience); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.Message == nil || e.Message.Data != "hello" {
		t.Fatalf("got %+v", e)
	}
	if _, err := a.Put(ctx, "early", nil, nil, 100*time.Millisecond); err == nil { // it may be made later
		t.Fatal("a key without a leader")
	}
	if err := program.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	if _, err := b.Put(ctx, "k", []byte("w"), nil, patience); err != nil {
		t.Fatal(err)
	}
	if e, err := a.Get(ctx, "k", patience); err != nil || e.Data != "w" {
		t.Fatalf("got %+v, %v", e, err)
	}
}

// All agents are started again with their data directories: the group goes on, its keys are gone, and
// tokens go on rising.
func TestKeysEndWithAllAgents(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 3)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var token uint64
	for round := range 2 {
		var agents []*testAgent
		for i, address := range addresses {
			a, _ := begin(t, fmt.Sprintf("listen: %s\nid: %c\nseeds: [%s]\nexpect: 3\ndata-dir: %s\n", address, 'a'+i,
				strings.Join(addresses, ", "), dirs[i]))
			agents = append(agents, a)
		}
		testutil.Eventually(t, "empty", func() bool {
			_, err := agents[round].Get(t.Context(), "k", patience)
			return status(err) == http.StatusNotFound
		})
		if _, err := agents[0].Lock(t.Context(), client.LockRequest{Name: "l", TTL: time.Second, Timeout: patience}); status(
			err) != http.StatusTooEarly {
			t.Fatalf("a lock at once, although one of the agents before may be held: %v", err)
		}
		lock, err := agents[0].Lock(t.Context(), client.LockRequest{
			Name: "l", TTL: time.Second, Wait: true,
			Timeout: patience,
		})
		if err != nil || lock.Token <= token {
			t.Fatalf("token %d after %d: %v", lock.Token, token, err)
		}
		token = lock.Token
		if _, err := agents[1].Put(t.Context(), "k", nil, nil, patience); err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			a.stop()
		}
		for _, a := range agents {
			<-a.ended
		}
	}
}

// Clients of several agents take one lock in turn. No two hold it, and tokens rise.
func TestLocksOfAgents(t *testing.T) {
	agents := startAll(t, 3, "")
	ctx := t.Context()
	if _, err := agents[0].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Millisecond}); status(err) !=
		http.StatusBadRequest {
		t.Fatalf("got %v", err)
	}
	var holders atomic.Int32
	var last atomic.Uint64
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			a := agents[i%3]
			for range 5 {
				l, err := a.Lock(ctx, client.LockRequest{
					Name: "l/1", Holder: fmt.Sprint("client", i), TTL: 10 * time.Second,
					Wait: true, Timeout: patience,
				})
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 || last.Swap(l.Token) >= l.Token {
					t.Errorf("two holders, or token %d not above the last", l.Token)
				}
				if err := agents[(i+1)%3].Renew(ctx, &l, patience); err != nil {
					t.Error(err)
				}
				holders.Add(-1)
				if err := a.Unlock(ctx, &l, patience); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	l, err := agents[0].Lock(ctx, client.LockRequest{Name: "l/1", Holder: "me", TTL: time.Second, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agents[1].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Second, Timeout: patience}); status(err) !=
		http.StatusConflict || !strings.HasSuffix(err.Error(), "by me") {
		t.Fatalf("got %v", err)
	}
	if list, err := agents[2].Locks(ctx); err != nil || len(list.Locks) != 1 || list.Locks[0].Holder != "me" {
		t.Fatalf("got %+v, %v", list, err)
	}
	began := time.Now()
	// nobody renews it
	next, err := agents[1].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Second, Wait: true, Timeout: patience})
	if err != nil || next.Token <= l.Token || time.Since(began) < time.Second/2 {
		t.Fatalf("got %+v, %v after %v", next, err, time.Since(began))
	}
	if err := agents[0].Renew(ctx, &l, patience); status(err) != http.StatusConflict {
		t.Fatalf("got %v", err)
	}
}

// All agents take part in shards that one of them was told of. Each partition has one owner by all
// agents, and the partitions of an agent that is gone have others.
func TestShardsOfAgents(t *testing.T) {
	agents := startAll(t, 3, "")
	ctx := t.Context()
	if _, err := agents[0].ShardOf(ctx, "s", "k"); status(err) != http.StatusNotFound {
		t.Fatalf("got %v", err)
	}
	made, err := agents[0].PutShards(ctx, "s", 16)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agents[2].ShardOf(ctx, "s", "k"); err != nil { // it may not take part yet, but they are there
		t.Fatal(err)
	}
	if again, err := agents[1].PutShards(ctx, "s", 16); err != nil || again.Version != made.Version {
		t.Fatalf("the same shards again: %+v, %v, want version %d", again, err, made.Version)
	}
	if _, err := agents[1].PutShards(ctx, "s", 64); status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), "16 partitions, not 64") {
		t.Fatalf("another number of partitions (case 77): %v", err)
	}
	agreed := func(agents []*testAgent) func() bool {
		return func() bool {
			mine := 0
			first, err := ownersOf(ctx, agents[0])
			for _, a := range agents {
				owners, otherErr := ownersOf(ctx, a)
				if err != nil || otherErr != nil || len(owners.Owners) != 16 || !reflect.DeepEqual(owners, first) {
					return false
				}
				if s, err := a.ShardOf(ctx, "s", "k"); err == nil && s.Mine && s.Token > 0 {
					mine++
				}
			}
			return mine == 1
		}
	}
	testutil.Eventually(t, "agreed", agreed(agents))
	agents[2].stop()
	<-agents[2].ended
	testutil.Eventually(t, "agreed again", agreed(agents[:2]))
}

// ownersOf returns owners without their tokens, which only the clients of the owner get.
func ownersOf(ctx context.Context, a *testAgent) (api.Owners, error) {
	owners, err := a.Owners(ctx, "s")
	for i := range owners.Owners {
		owners.Owners[i].Token = 0
	}
	return owners, err
}

// The token of a lock is no secret: others see it in what the holder writes. Only the handle, which the
// holder alone has, renews and releases the lock (case 95).
func TestLocksNeedTheirHandle(t *testing.T) {
	agents := startAll(t, 2, "")
	ctx := t.Context()
	l, err := agents[0].Lock(ctx, client.LockRequest{
		Name: "l", Holder: "me", TTL: 10 * time.Second, Wait: true,
		Timeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	thief := api.Lock{Name: l.Name, Token: l.Token}
	for _, handle := range []string{"", fmt.Sprint(l.Token), fmt.Sprint(l.Token, "-"), fmt.Sprint(l.Token, "-guess")} {
		thief.Handle = handle
		for _, err := range []error{agents[1].Unlock(ctx, &thief, patience), agents[1].Renew(ctx, &thief, patience)} {
			if status(err) != http.StatusForbidden {
				t.Errorf("a client with the handle %q: %v", handle, err)
			}
		}
	}
	if err := agents[1].Unlock(ctx, &l, patience); err != nil {
		t.Error(err)
	}
	if err := agents[1].Unlock(ctx, &l, patience); status(err) != http.StatusConflict {
		t.Errorf("a lock that is free: %v", err)
	}
}

// Clients cannot send on the topics of the agents, nor have handlers for them, and cannot make all
// agents keep more shards than the limits (case 95).
func TestClientsCannotHarmShards(t *testing.T) {
	a := start(t, "expect: 1\n")
	ctx := t.Context()
	for _, topic := range []string{"pleach/shard/s", "pleach/", "pleach.order"} {
		if _, err := a.Broadcast(ctx, topic, []byte("forged"), false, patience); status(err) != http.StatusBadRequest {
			t.Errorf("topic %s: %v", topic, err)
		}
	}
	for i := range api.MaxShardPartitions / 4096 {
		if _, err := a.PutShards(ctx, fmt.Sprint("n", i), 4096); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.PutShards(ctx, "one more", 1); status(err) != http.StatusRequestEntityTooLarge {
		t.Errorf("one more: %v", err)
	}
	if _, err := a.PutShards(ctx, "n0", 4096); err != nil {
		t.Errorf("shards that are there: %v", err)
	}
}
