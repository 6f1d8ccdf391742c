package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/agent/client"
	"github.com/pleach-go/pleach/internal/testutil"
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
	if _, err := agents[1].Put(ctx, "config/a b", nil, &none, patience); status(err) != http.StatusConflict || !strings.Contains(err.Error(), fmt.Sprint(first.Version)) {
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
	if _, err := agents[0].Put(ctx, "k", make([]byte, 64<<10+1), nil, patience); status(err) != http.StatusRequestEntityTooLarge {
		t.Fatalf("got %v", err)
	}
	end()
	<-ended
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

// All agents are started again with their data folders: the group goes on, its keys are gone, and
// tokens go on rising.
func TestKeysEndWithAllAgents(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 3)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var token uint64
	for round := range 2 {
		var agents []*testAgent
		for i, address := range addresses {
			a, _ := begin(t, fmt.Sprintf("listen: %s\nid: %c\nseeds: [%s]\nexpect: 3\ndata-dir: %s\n", address, 'a'+i, strings.Join(addresses, ", "), dirs[i]))
			agents = append(agents, a)
		}
		eventually(t, "empty", func() bool {
			_, err := agents[round].Get(t.Context(), "k", patience)
			return status(err) == http.StatusNotFound
		})
		lock, err := agents[0].Lock(t.Context(), client.LockRequest{Name: "l", TTL: time.Second, Timeout: patience})
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
	if _, err := agents[0].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Millisecond}); status(err) != http.StatusBadRequest {
		t.Fatalf("got %v", err)
	}
	var holders atomic.Int32
	var last atomic.Uint64
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			a := agents[i%3]
			for range 5 {
				l, err := a.Lock(ctx, client.LockRequest{Name: "l/1", Holder: fmt.Sprint("client", i), TTL: 10 * time.Second, Wait: true, Timeout: patience})
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 || last.Swap(l.Token) >= l.Token {
					t.Errorf("two holders, or token %d not above the last", l.Token)
				}
				if err := agents[(i+1)%3].Renew(ctx, "l/1", l.Token, patience); err != nil {
					t.Error(err)
				}
				holders.Add(-1)
				if err := a.Unlock(ctx, "l/1", l.Token, patience); err != nil {
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
	if _, err := agents[1].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Second, Timeout: patience}); status(err) != http.StatusConflict || !strings.Contains(err.Error(), "me") {
		t.Fatalf("got %v", err)
	}
	if list, err := agents[2].Locks(ctx); err != nil || len(list.Locks) != 1 || list.Locks[0].Holder != "me" || list.Locks[0].Token != l.Token {
		t.Fatalf("got %+v, %v", list, err)
	}
	began := time.Now()
	next, err := agents[1].Lock(ctx, client.LockRequest{Name: "l/1", TTL: time.Second, Wait: true, Timeout: patience}) // nobody renews it
	if err != nil || next.Token <= l.Token || time.Since(began) < time.Second/2 {
		t.Fatalf("got %+v, %v after %v", next, err, time.Since(began))
	}
	if err := agents[0].Renew(ctx, "l/1", l.Token, patience); status(err) != http.StatusConflict {
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
	if _, err := agents[0].PutShards(ctx, "s", 16); err != nil {
		t.Fatal(err)
	}
	agreed := func(agents []*testAgent) func() bool {
		return func() bool {
			mine := 0
			first, err := agents[0].Owners(ctx, "s")
			for _, a := range agents {
				owners, otherErr := a.Owners(ctx, "s")
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
	eventually(t, "agreed", agreed(agents))
	agents[2].stop()
	<-agents[2].ended
	eventually(t, "agreed again", agreed(agents[:2]))
}
